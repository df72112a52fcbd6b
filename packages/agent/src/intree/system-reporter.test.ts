import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { FakeClock, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { describe, expect, it, vi } from "vitest";
import { rootOf, twoSockets } from "../../../../test/fixtures/machines.ts";
import { Host } from "../host/index.ts";
import { SystemReporter } from "./system-reporter.ts";

async function machine() {
  const root = await rootOf(twoSockets);
  const clock = new FakeClock();
  const warn = vi.fn();
  // The host keeps the real clock: its deadline bounds real reads.
  const host = new Host({ root });
  const reporter = new SystemReporter({ host, clock, log: { ...silentLogger, warn, info: vi.fn() } });
  return { root, clock, warn, host, reporter };
}

const noAbort = new AbortController().signal;

function properties(response: GetReportContentResponse): Record<string, string | string[]> {
  const list = JSON.parse(new TextDecoder().decode(response.content[0]!.field[0]!.value)) as {
    propertyName: string;
    propertyQuantity?: string;
    propertyValues?: string[];
  }[];
  return Object.fromEntries(
    list.map((each) => [each.propertyName, each.propertyQuantity ?? each.propertyValues!]),
  );
}

describe("getReportContent", () => {
  it("is one spec field of the CustomNodeResource", async () => {
    const { reporter } = await machine();
    const { content } = await reporter.getReportContent(noAbort);
    expect(content).toHaveLength(1);
    expect(content[0]?.groupVersionKind).toEqual({
      group: "node.katalyst.kubewharf.io",
      version: "v1alpha1",
      kind: "CustomNodeResource",
    });
    expect(content[0]?.field[0]).toMatchObject({ fieldType: 0, fieldName: "NodeResourceProperties" });
  });

  it("gives the same bytes while nothing changes, and reads what is fixed once", async () => {
    const { reporter, host } = await machine();
    const cpuInfo = vi.spyOn(host, "cpuInfo");
    const numaNodes = vi.spyOn(host, "numaNodes");
    const first = await reporter.getReportContent(noAbort);
    expect(await reporter.getReportContent(noAbort)).toEqual(first);
    expect(cpuInfo).toHaveBeenCalledTimes(1);
    expect(numaNodes).toHaveBeenCalledTimes(1);
  });

  it("sees a link go down and CPUs go offline", async () => {
    const { reporter, root } = await machine();
    await reporter.getReportContent(noAbort);
    await writeFile(join(root, "sys/class/net/bond0/operstate"), "down\n");
    await writeFile(join(root, "sys/devices/system/cpu/online"), "0-3,8-11\n");
    await writeFile(join(root, "sys/devices/system/node/node1/cpulist"), "\n");
    const now = properties(await reporter.getReportContent(noAbort));
    expect(now).toMatchObject({ nbw: "25k", cpu: "8", numa: "1" });
  });

  it("keeps the last value of what cannot be read, and logs that once", async () => {
    const { reporter, root, warn } = await machine();
    const first = await reporter.getReportContent(noAbort);
    await rm(join(root, "proc/meminfo"));
    await mkdir(join(root, "proc/meminfo"));
    expect(await reporter.getReportContent(noAbort)).toEqual(first);
    await reporter.getReportContent(noAbort);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0].problems).toContain("/proc/meminfo");
  });

  it("fails when nothing is known, so that what was published stays", async () => {
    const host = new Host({ root: "/nonexistent" });
    const reporter = new SystemReporter({ host, clock: systemClock, log: silentLogger });
    await expect(reporter.getReportContent(noAbort)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("one caller's abort does not fail another who shares the reading", async () => {
    const { reporter } = await machine();
    const impatient = new AbortController();
    const aborted = reporter.getReportContent(impatient.signal);
    const other = reporter.getReportContent(noAbort);
    impatient.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect((await other).content).toHaveLength(1);
  });
});

describe("listAndWatch", () => {
  it("gives the content at once, then only when it changed", async () => {
    const { reporter, root, clock } = await machine();
    const stop = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const response of reporter.listAndWatch(stop.signal))
        seen.push(String(properties(response).cpu));
    })();
    watching.catch(() => {});
    await eventually(() => expect([seen.length, clock.timers]).toEqual([1, 1]));

    await clock.step(30_000);
    await eventually(() => expect(clock.timers).toBe(1));
    expect(seen).toEqual(["14"]);

    await writeFile(join(root, "sys/devices/system/cpu/online"), "0-12\n");
    await clock.step(30_000);
    await eventually(() => expect(seen).toEqual(["14", "13"]));

    stop.abort(new Error("done"));
    await expect(watching).rejects.toThrow("done");
    expect(clock.timers).toBe(0);
  });
});
