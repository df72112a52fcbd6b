import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { TIMEOUT_MS } from "./kubelet-reporter.ts";
import { fields, holding, holdings, noAbort, setUp, tearDown, web } from "./testing/reporter-setup.ts";

afterEach(tearDown);

describe("getReportContent", () => {
  it("is the zones, and the policy where it is known", async () => {
    const { kubelet } = await setUp();
    const configFile = join(kubelet.directory, "config.yaml");
    const manager = "topologyManagerPolicy: restricted\ntopologyManagerScope: pod\n";
    await writeFile(configFile, `kind: KubeletConfiguration\n${manager}`);
    const { reporter } = await setUp({ podResourcesSocket: kubelet.socket, configFile });
    await kubelet.start();
    const response = await reporter.getReportContent(noAbort);
    expect(holdings(response)).toEqual(web);
    expect(fields(response).TopologyPolicy).toBe("RestrictedPodLevel");
  });

  it("has the policy of the drop-in directory and the flags of the running kubelet", async () => {
    const { kubelet } = await setUp();
    const configFile = join(kubelet.directory, "config.yaml");
    const dropIns = join(kubelet.directory, "conf.d");
    await mkdir(dropIns);
    const kind = "kind: KubeletConfiguration\n";
    await writeFile(configFile, `${kind}topologyManagerPolicy: none\ntopologyManagerScope: container\n`);
    await writeFile(
      join(dropIns, "10.conf"),
      `${kind}topologyManagerPolicy: best-effort\ntopologyManagerScope: pod\n`,
    );
    const { root, reporter } = await setUp({ podResourcesSocket: kubelet.socket, configFile });
    const line = ["kubelet", "--config-dir", dropIns, "--topology-manager-policy=restricted"];
    await mkdir(join(root, "proc/40"));
    await writeFile(join(root, "proc/40/comm"), "kubelet\n");
    await writeFile(join(root, "proc/40/cmdline"), `${line.join("\0")}\0`);
    await kubelet.start();
    const response = await reporter.getReportContent(noAbort);
    expect(fields(response).TopologyPolicy).toBe("RestrictedPodLevel");
  });

  it("follows the kubelet's configuration file, and keeps the policy when it can't be read", async () => {
    const { kubelet, reporter, log } = await setUp();
    const configFile = join(kubelet.directory, "config.yaml");
    const other = await setUp({ podResourcesSocket: kubelet.socket, configFile });
    await kubelet.start();
    const policy = async () => fields(await other.reporter.getReportContent(noAbort)).TopologyPolicy;
    expect(await policy()).toBeUndefined();
    expect(other.log.warn).toHaveBeenCalledTimes(1);
    await writeFile(configFile, "kind: KubeletConfiguration\ntopologyManagerPolicy: single-numa-node\n");
    expect(await policy()).toBe("SingleNUMANodeContainerLevel");
    await writeFile(configFile, "kind: KubeletConf");
    expect(await policy()).toBe("SingleNUMANodeContainerLevel");
    expect(other.log.warn).toHaveBeenCalledTimes(2);

    expect(fields(await reporter.getReportContent(noAbort)).TopologyPolicy).toBeUndefined();
    expect(log.warn).not.toHaveBeenCalled();
  });

  it("fails while the kubelet is unavailable, and logs that and its return once", async () => {
    const { kubelet, reporter, log, metric } = await setUp();
    for (const _ of [1, 2]) {
      await expect(reporter.getReportContent(noAbort)).rejects.toMatchObject({ code: "unavailable" });
    }
    expect(log.warn).toHaveBeenCalledTimes(1);
    await kubelet.start();
    await reporter.getReportContent(noAbort);
    expect(log.info.mock.calls.map(([, message]) => message)).toEqual([
      "kubelet's PodResources can be read again",
    ]);
    expect(await metric("nodekeeper_intree_kubelet_readings_total")).toEqual([
      'nodekeeper_intree_kubelet_readings_total{result="unavailable"} 2',
      'nodekeeper_intree_kubelet_readings_total{result="ok"} 1',
    ]);
  });

  it("fails at its own deadline when the kubelet hangs, whatever the caller's", async () => {
    const { kubelet, reporter, clock } = await setUp();
    kubelet.answerList = () => new Promise(() => {});
    await kubelet.start();
    const asked = expect(reporter.getReportContent(noAbort)).rejects.toMatchObject({
      code: "deadline",
      message: expect.stringContaining(kubelet.socket),
    });
    await until("the kubelet is asked", () => kubelet.lists === 1);
    await clock.step(TIMEOUT_MS);
    await asked;
    expect(clock.timers).toBe(0);
  });

  it("counts a caller that leaves as no failure of the kubelet", async () => {
    const { kubelet, reporter, clock, log } = await setUp();
    kubelet.answerList = () => new Promise(() => {});
    await kubelet.start();
    const controller = new AbortController();
    const asked = reporter.getReportContent(controller.signal);
    await until("the kubelet is asked", () => kubelet.lists === 1);
    controller.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    await until("the reading has ended", () => clock.timers === 0);
    expect(log.warn).not.toHaveBeenCalled();
  });

  it("waits for the runtime's pods: without them there would be no allocations", async () => {
    const { kubelet, reporter, clock, pods } = await setUp();
    await kubelet.start();
    const { promise, resolve } = Promise.withResolvers<void>();
    pods.isListed = promise;
    const asked = reporter.getReportContent(noAbort);
    const failed = expect(asked).rejects.toMatchObject({
      code: "deadline",
      message: expect.stringContaining("first list of pods"),
    });
    await clock.step(TIMEOUT_MS);
    await failed;
    expect(kubelet.lists).toBe(0);
    const again = reporter.getReportContent(noAbort);
    resolve();
    expect(holdings(await again)).toEqual(web);
  });

  it("leaves out a pod that does not run, and counts it", async () => {
    const { kubelet, reporter, metric } = await setUp();
    kubelet.pods = [holding("web", 1n), holding("deleted", 2n)];
    await kubelet.start();
    expect(holdings(await reporter.getReportContent(noAbort))).toEqual(web);
    expect(await metric("nodekeeper_intree_kubelet_unknown_pods")).toEqual([
      "nodekeeper_intree_kubelet_unknown_pods 1",
    ]);
  });

  it("logs once what cannot be reported, and once that it can again", async () => {
    const { kubelet, reporter, log } = await setUp();
    kubelet.allocatable = { cpuIds: [1n, 77n] };
    await kubelet.start();
    await reporter.getReportContent(noAbort);
    await reporter.getReportContent(noAbort);
    expect(log.warn.mock.calls).toEqual([
      [expect.objectContaining({ problems: ["CPU 77 is not online"] }), expect.any(String)],
    ]);
    kubelet.allocatable = { cpuIds: [1n] };
    await reporter.getReportContent(noAbort);
    expect(log.info).toHaveBeenCalledTimes(1);
  });
});
