import { expect, it } from "vitest";
import type { DecideInput } from "../decide/round.ts";
import { completeInput } from "./round-record.ts";

type Recorded = Pick<DecideInput, "state" | "policy">;

/** Input as a version of the agent recorded it. */
function recorded(policy: object): Recorded {
  return { state: {}, policy } as unknown as Recorded;
}

it("a recorded policy has the times that an earlier version recorded under other names", () => {
  const { policy } = completeInput(recorded({ conditionTransitionMs: 2_000, forgetPluginMs: 0 }));
  expect(policy).toMatchObject({ conditionTransitionPeriodMs: 2_000, forgetPluginAfterMs: 0 });
  expect(Object.keys(policy)).not.toEqual(expect.arrayContaining(["conditionTransitionMs"]));
});

it("a recorded policy without these times has the defaults of then", () => {
  const { policy } = completeInput(recorded({ burst: 7 }));
  expect(policy).toMatchObject({
    burst: 7,
    conditionTransitionPeriodMs: 300_000,
    forgetPluginAfterMs: 300_000,
  });
});
