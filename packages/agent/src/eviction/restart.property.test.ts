import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { observeJson } from "./observe/observed-pod.ts";
import { sourceOf, TestAgent } from "./testing/manager-setup.ts";
import { FakePods, jsonPod } from "./testing/round-parts.ts";
import { evictPod, namesOf } from "./testing/rounds.ts";

const names = ["a", "b", "c", "d", "e"];

const arbitraryStep = fc.record({
  /** What the plugin forces in this round. */
  forced: fc.subarray(names),
  /** What happens to evictions under way after it: the call reaches the API server, and its answer the agent. */
  sent: fc.subarray(names),
  answered: fc.subarray(names),
  /** Pods that are deleted after it. */
  deleted: fc.subarray(names, { maxLength: 1 }),
  kill: fc.constantFrom(false, true),
});

it("whenever the agent is killed: no pod is sent twice, and none that its plugin does not ask for in that round", () =>
  fc.assert(
    fc.asyncProperty(fc.array(arbitraryStep, { minLength: 3, maxLength: 12 }), async (steps) => {
      const directory = mkdtempSync(join(tmpdir(), "nk-restart-"));
      const pods = new FakePods(...names);
      let current = steps[0]!;
      const plugin = sourceOf("p", {
        getEvictPods: async () => ({
          pods: current.forced.map((name) => evictPod(name, { force: true })),
          condition: null,
        }),
      });
      const newAgent = () => new TestAgent(directory, pods, [plugin]);
      const reached = new Set<string>();
      let agent = newAgent();
      try {
        for (current of steps) {
          const { evictor } = agent;
          const before = evictor.started.length;
          await agent.round();
          for (const name of namesOf(evictor.started.slice(before))) {
            expect(current.forced).toContain(name);
            expect(reached).not.toContain(name);
          }
          // What is followed had reached the API server, or is deleted.
          for (const name of namesOf(evictor.resumed)) {
            expect(reached.has(name) || !pods.pods.has(name)).toBe(true);
          }
          const started = new Set(namesOf(evictor.started));
          for (const name of current.sent) {
            if (!started.has(name) || !pods.pods.has(name) || reached.has(name)) continue;
            reached.add(name);
            const metadata = { deletionTimestamp: "2023-11-14T22:13:20Z" };
            pods.pods.set(name, observeJson(jsonPod(name, { metadata })));
            const at = agent.clock.monotonic();
            if (current.answered.includes(name)) evictor.accept({ uid: name, at, deadline: at + 60_000 });
          }
          for (const name of current.deleted) pods.pods.delete(name);
          if (!current.kill) continue;
          agent.kill();
          agent = newAgent();
        }
      } finally {
        agent.kill();
        rmSync(directory, { recursive: true, force: true });
      }
    }),
    { numRuns: 12 },
  ));
