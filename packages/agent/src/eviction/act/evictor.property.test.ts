import fc from "fast-check";
import { expect, it } from "vitest";
import { inputs } from "../../../../../test/support/sizes.ts";
import { pending, TestEvictor, unavailable, victim } from "../testing/evictor-setup.ts";

const names = ["a", "b", "c"] as const;

type Action =
  | { do: "begin" | "withdraw" | "remove" | "recreate" | "protect"; name: string }
  | { do: "server"; mood: Mood }
  | { do: "pass"; seconds: number }
  | { do: "kill" };
type Mood = "available" | "unavailable" | "busy" | "losesAnswers";

const name = fc.constantFrom(...names);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("begin" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("withdraw" as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("remove" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("recreate" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("protect" as const), name }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("server" as const),
      mood: fc.constantFrom<Mood>("available", "unavailable", "busy", "losesAnswers"),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("pass" as const), seconds: fc.integer({ min: 0, max: 40 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ do: "kill" as const }) },
);

/** A server with three pods, and one agent after another in front of it. */
class World {
  mood: Mood = "available";
  readonly evicted: string[] = [];
  readonly recreated = new Map<string, number>();
  /** What the state database has: decided and without an outcome. */
  readonly decided = new Map<string, string>();
  readonly ended = new Set<string>();
  /** Of those, the ones whose acceptance is written down. */
  readonly accepted = new Set<string>();
  readonly isProtected = new Set<string>();
  readonly harmed: string[] = [];
  agent = this.#newAgent(undefined);

  #newAgent(before: TestEvictor | undefined): TestEvictor {
    const agent = new TestEvictor(before ? [] : names);
    for (const [key, object] of before?.pods ?? []) agent.pods.set(key, object);
    agent.onRead = () => (this.mood === "unavailable" ? Promise.reject(unavailable) : undefined);
    agent.onKill = async ({ pod }) => {
      const retry = { kind: "retry", message: "connection refused", retryAfterMs: undefined } as const;
      if (this.mood === "unavailable") return { ...retry, maybeSent: true };
      if (this.mood === "busy") return { ...retry, retryAfterMs: 3_000, maybeSent: false };
      const { uid } = agent.pods.get(pod.name)!.metadata;
      // The precondition.
      if (uid !== pod.uid) return { ...retry, maybeSent: false };
      if (this.isProtected.has(pod.uid)) this.harmed.push(pod.uid);
      this.evicted.push(pod.uid);
      this.#terminate(pod.name);
      return this.mood === "losesAnswers"
        ? { ...retry, maybeSent: true }
        : { kind: "accepted", message: "accepted" };
    };
    agent.ledger.onProgress(({ uid, stage }) => {
      if (stage === "accepted") this.accepted.add(uid);
      return true;
    });
    agent.start();
    return agent;
  }

  uidOf(podName: string): string {
    const times = this.recreated.get(podName) ?? 0;
    return times === 0 ? podName : `${podName}-${times}`;
  }

  async perform(step: Action): Promise<void> {
    const { agent } = this;
    switch (step.do) {
      case "begin": {
        const uid = this.uidOf(step.name);
        if (!agent.pods.has(step.name) || this.decided.has(uid)) break;
        this.decided.set(uid, step.name);
        this.ended.delete(uid);
        agent.evictor.start([victim(step.name, { uid })]);
        break;
      }
      case "withdraw": {
        const uid = this.uidOf(step.name);
        const reason = "no longer met";
        agent.evictor.withdraw([{ uid, namespace: "default", name: step.name, stage: "started", reason }]);
        break;
      }
      case "remove":
        this.#remove(step.name);
        break;
      case "recreate":
        this.#remove(step.name);
        this.recreated.set(step.name, (this.recreated.get(step.name) ?? 0) + 1);
        agent.put(step.name, { metadata: { uid: this.uidOf(step.name) } });
        break;
      case "protect":
        if (agent.pods.get(step.name)?.metadata.deletionTimestamp !== undefined) break;
        if (!agent.pods.has(step.name)) break;
        agent.put(step.name, { metadata: { uid: this.uidOf(step.name) }, spec: { priority: 2_000_000_000 } });
        this.isProtected.add(this.uidOf(step.name));
        break;
      case "server":
        this.mood = step.mood;
        break;
      case "pass":
        await agent.clock.step(step.seconds * 1000);
        break;
      case "kill":
        await agent.stop();
        this.agent = this.#newAgent(agent);
        this.#startAgain();
        break;
    }
    await this.agent.clock.step(0);
    this.#takeOutcomes();
  }

  // What the first round of an agent does: what was sent is followed, the rest is decided again.
  #startAgain(): void {
    const { evictor, clock, pods } = this.agent;
    const since = clock.now();
    for (const [uid, podName] of this.decided) {
      const metadata = pods.get(podName)?.metadata;
      const isUntouched = metadata?.uid === uid && metadata.deletionTimestamp === undefined;
      if (this.accepted.has(uid) || !isUntouched) evictor.resume([pending(podName, { uid, since })]);
      else evictor.start([victim(podName, { uid })]);
    }
  }

  // What the round does: outcomes are written down, and their pods no longer pending.
  #takeOutcomes(): void {
    for (const { uid } of this.agent.ledger.takeOutcomes()) {
      this.decided.delete(uid);
      this.ended.add(uid);
    }
  }

  #terminate(podName: string): void {
    const metadata = { uid: this.uidOf(podName), deletionTimestamp: "2023-11-14T22:13:20Z" };
    this.agent.put(podName, { metadata });
  }

  #remove(podName: string): void {
    const uid = this.agent.pods.get(podName)?.metadata.uid;
    this.agent.pods.delete(podName);
    if (uid !== undefined) this.agent.reportDeleted(uid);
  }
}

it("no pod is evicted twice, none that is protected or was not decided on, and none is forgotten", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
      const world = new World();
      const everDecided = new Set<string>();
      for (const step of actions) {
        await world.perform(step);
        for (const uid of world.decided.keys()) everDecided.add(uid);
        for (const uid of world.ended) everDecided.add(uid);
      }
      // In the end the server is available and terminating pods are deleted.
      await world.perform({ do: "server", mood: "available" });
      await world.perform({ do: "pass", seconds: 40 });
      for (const podName of names) {
        const isTerminating = world.agent.pods.get(podName)?.metadata.deletionTimestamp !== undefined;
        if (isTerminating) await world.perform({ do: "remove", name: podName });
      }
      for (let at = 0; at < 20; at++) await world.perform({ do: "pass", seconds: 40 });
      await world.agent.stop();

      expect(new Set(world.evicted).size).toBe(world.evicted.length);
      for (const uid of world.evicted) expect(everDecided).toContain(uid);
      expect(world.harmed).toEqual([]);
      expect([...world.decided.keys()]).toEqual([]);
    }),
    { numRuns: inputs(300) },
  );
});
