import fc from "fast-check";
import { expect, it } from "vitest";
import { inputs } from "../../../../test/support/sizes.ts";
import { evictPod, TestRounds, testPod } from "../../../agent/src/eviction/testing/rounds.ts";

const WINDOW_S = 60;
const owners = ["web", "db"] as const;

/** What becomes of an eviction that a round decided. */
type End = "deleted" | "hangs" | "refused" | "sentWithoutAnswer" | "stopsAndStays";

const arbitraryStory = fc.record({
  perNode: fc.integer({ min: 1, max: 4 }),
  perOwner: fc.integer({ min: 1, max: 2 }),
  steps: fc.array(
    fc.record({
      seconds: fc.integer({ min: 1, max: 40 }),
      end: fc.constantFrom<End>("deleted", "hangs", "refused", "sentWithoutAnswer", "stopsAndStays"),
      forced: fc.boolean(),
      wallStep: fc.constantFrom(0, 0, -7_200, 7_200),
    }),
    { minLength: 10, maxLength: 40 },
  ),
});

it("no window holds more evictions that were sent than the limits allow, whatever came of them", () =>
  fc.assert(
    fc.property(arbitraryStory, ({ perNode, perOwner, steps }) => {
      const limits = { windowMs: WINDOW_S * 1000, perNode, perNamespace: null, perOwner };
      const pods = Array.from({ length: 40 }, (_, at) => {
        const owner = { kind: "ReplicaSet", name: owners[at % 2]!, uid: owners[at % 2]! };
        return testPod(`pod-${at}`, { owner, gracePeriodSeconds: 5 });
      });
      const rounds = new TestRounds(pods, { limits, failedEvictionPauseMs: 1_000 });
      /** Sent evictions, by the time that has passed, not by any clock. */
      const sent: { at: number; owner: string }[] = [];
      let elapsed = 0;
      for (const { seconds, end, forced, wallStep } of steps) {
        const names = rounds.pods.map(({ name }) => name);
        const { victims } = rounds.play({
          p: forced
            ? { pods: names.map((name) => evictPod(name, { force: true })) }
            : { threshold: { metType: "hard" }, top: names },
        });
        for (const { uid } of victims) {
          const { owner } = rounds.pods.find((pod) => pod.uid === uid)!;
          if (end !== "refused") sent.push({ at: elapsed, owner: owner!.uid });
          const message = "because";
          switch (end) {
            case "deleted":
              rounds.accept(uid);
              rounds.remove(uid);
              break;
            case "hangs":
              rounds.accept(uid);
              rounds.change(uid, { deletionTimestamp: 1 });
              rounds.outcomes.push({ uid, result: "overdue", sent: true, message });
              break;
            case "refused":
              rounds.outcomes.push({ uid, result: "failed", message });
              break;
            case "sentWithoutAnswer":
              rounds.outcomes.push({ uid, result: "failed", sent: true, message });
              break;
            case "stopsAndStays":
              rounds.accept(uid);
              rounds.outcomes.push({ uid, result: "failed", message });
              break;
          }
        }
        rounds.pass(seconds);
        elapsed += seconds;
        rounds.stepClock(wallStep);
        for (const { at } of sent) {
          const inWindow = sent.filter((one) => one.at >= at && one.at < at + WINDOW_S);
          expect(inWindow.length).toBeLessThanOrEqual(perNode);
          for (const owner of owners) {
            expect(inWindow.filter((one) => one.owner === owner).length).toBeLessThanOrEqual(perOwner);
          }
        }
      }
    }),
    { numRuns: inputs(200) },
  ));
