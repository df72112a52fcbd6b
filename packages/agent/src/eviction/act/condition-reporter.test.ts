import type { CustomNodeResourceTaint } from "@nodekeeper/api/decide";
import { silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { ConditionReporter } from "./condition-reporter.ts";

const taint = (key: string): CustomNodeResourceTaint => ({
  qosLevel: "reclaimed_cores",
  key,
  effect: "NoSchedule",
  since: 0,
  why: "",
});
const never = new AbortController().signal;

/** A reporter after a start with a stored taint "a", and the keys of the taints that it reports. */
function started({ isSuspended = false } = {}) {
  const reporter = new ConditionReporter([taint("a")], isSuspended, {
    log: silentLogger,
    nodeName: "worker-1",
  });
  const keys = async () => {
    const { content } = await reporter.getReportContent(never);
    const lists = content.flatMap(({ field }) =>
      field.map(({ value }) => JSON.parse(Buffer.from(value).toString())),
    );
    return lists.flat().map(({ key }: { key: string }) => key);
  };
  return { reporter, keys };
}

it("reports stored taints until the first complete round", async () => {
  const { reporter, keys } = started();
  expect(await keys()).toEqual(["a"]);
  reporter.setDesired([taint("b")], false);
  expect(await keys()).toEqual(["b", "a"]);
  reporter.setDesired([taint("b")], true);
  expect(await keys()).toEqual(["b"]);
});

it.each([
  ["after a complete round", (reporter: ConditionReporter) => reporter.setDesired([], true)],
  ["after dry run", (reporter: ConditionReporter) => reporter.suspend()],
])("reports no stored taint again %s", async (_name, act) => {
  const { reporter, keys } = started();
  act(reporter);
  expect(await keys()).toEqual([]);
  reporter.setDesired([], false);
  expect(await keys()).toEqual([]);
});

it("reports nothing while it is suspended from the start", async () => {
  const { reporter, keys } = started({ isSuspended: true });
  expect(await keys()).toEqual([]);
  expect(reporter.leavesTaints).toBe(true);
  reporter.setDesired([], false);
  expect([await keys(), reporter.leavesTaints]).toEqual([[], true]);
  reporter.setDesired([], true);
  expect(reporter.leavesTaints).toBe(false);
});
