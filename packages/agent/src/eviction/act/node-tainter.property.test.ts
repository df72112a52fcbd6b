import type { ErrorCode } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { LiveTaint } from "../parts.ts";
import { type Call, failing } from "../testing/fake-node.ts";
import { foreign, setUp } from "../testing/tainter-setup.ts";

it("after any faults the Node gets the desired taints, others are unchanged, or health reports why not", async () => {
  const names = fc.subarray(["a", "b"]);
  const calls = fc.subarray<Call>(["list", "watch", "get", "patch"]);
  const codes = fc.constantFrom<ErrorCode>("forbidden", "unavailable", "throttled", "conflict");
  const step = fc.oneof(
    fc.record({ kind: fc.constant("want" as const), names }),
    fc.record({
      kind: fc.constant("fault" as const),
      calls,
      code: codes,
      retryAfterMs: fc.constantFrom(undefined, 60_000),
    }),
    fc.record({ kind: fc.constant("meddle" as const), keep: fc.boolean(), value: fc.constantFrom("", "x") }),
    fc.record({ kind: fc.constant("delete" as const) }),
    fc.record({ kind: fc.constant("create" as const) }),
    fc.record({ kind: fc.constant("cut" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await using test = setUp();
      let wanted: string[] = [];
      let others: LiveTaint[] = [];
      let silentFor = 0;
      const isRight = () => {
        const { taints } = test.node;
        if (taints === undefined) return true;
        const ours = taints.filter(({ key }) => key?.startsWith("nodekeeper.dev/"));
        const keys = ours.map(({ key }) => key?.slice("nodekeeper.dev/".length)).sort();
        return JSON.stringify(keys) === JSON.stringify(wanted) && ours.every(({ value }) => !value);
      };
      const round = async () => {
        await test.rounds(1, ...wanted);
        silentFor = isRight() || !test.health().ok ? 0 : silentFor + 1;
        // A minute for a watch that is lost, another for a write that fails, and the rounds in which they end.
        expect(silentFor).toBeLessThanOrEqual(26);
        const isOther = ({ key }: LiveTaint) => key === foreign.key;
        if (test.node.taints) expect(test.node.taints.filter(isOther)).toEqual(others);
      };
      await round();
      for (const one of steps) {
        if (one.kind === "want") wanted = one.names;
        else if (one.kind === "fault") {
          test.node.fault = (call) =>
            one.calls.includes(call) ? failing(one.code, one.retryAfterMs) : undefined;
          if (one.calls.includes("watch")) test.node.cut();
        } else if (one.kind === "cut") test.node.cut();
        else if (one.kind === "delete") {
          if (test.node.taints) test.node.put(undefined);
          others = [];
        } else if (one.kind === "create") {
          if (!test.node.taints) test.node.put([]);
        } else if (test.node.taints) {
          const ours = one.keep ? test.node.taints.filter(({ key }) => key !== foreign.key) : [];
          others = [foreign];
          test.node.put([foreign, ...ours.map((taint) => ({ ...taint, value: one.value }))]);
        }
        for (let left = 4; left > 0; left--) await round();
      }
      test.node.fault = () => undefined;
      // Beyond the longest Retry-After, backoff and pace of repairs.
      for (let left = 30; left > 0; left--) await round();
      expect(isRight()).toBe(true);
      expect(test.health().ok || test.health().message.includes("another client")).toBe(true);
    }),
    { numRuns: 60 },
  );
});
