import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inputs } from "../../../../test/support/sizes.ts";
import type { ContainerState } from "../runtime/index.ts";
import { LifecycleStore, StateDatabase } from "../state/index.ts";
import { createHarness } from "./testing/harness.ts";
import { MemoryRuntime } from "./testing/memory-runtime.ts";

type Harness = ReturnType<typeof createHarness>;

const uids = ["a", "b", "c"];

/** One thing that happens on the node. */
const change = fc.record({
  uid: fc.constantFrom(...uids),
  what: fc.constantFrom("add", "remove", "create", "start", "exit", "collect", "stopSandbox" as const),
  which: fc.integer({ min: 0, max: 2 }),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

type Containers = NonNullable<ReturnType<MemoryRuntime["pods"]["get"]>>["containers"];

/** Plays changes as a runtime would: a container goes from created to running to exited to removed, never back. */
class Node {
  readonly #runtime: MemoryRuntime;
  #made = 0;

  constructor(runtime: MemoryRuntime) {
    this.#runtime = runtime;
  }

  play({ uid, what, which }: Change): void {
    const pod = this.#runtime.pods.get(uid);
    if (what === "add") {
      if (pod) return;
      this.#runtime.addPod(uid);
      // A pod that comes back has a new sandbox, as a UID that is used again in a test has.
      this.#runtime.remove(uid, `${uid}-sandbox`);
      this.#runtime.set(uid, `${uid}-sandbox-${this.#made++}`, "running", "sandbox");
      return;
    }
    if (!pod) return;
    if (what === "remove") this.#runtime.removePod(uid);
    else if (what === "create") this.#runtime.set(uid, `${uid}-${this.#made++}`, "created");
    else this.#playContainer(uid, pod.containers, what, which);
  }

  #playContainer(uid: string, containers: Containers, what: Change["what"], which: number): void {
    const kind = what === "stopSandbox" ? "sandbox" : "container";
    const candidates = [...containers.values()].filter((c) => c.kind === kind);
    const chosen = candidates[which % Math.max(candidates.length, 1)];
    if (!chosen) return;
    if (what === "collect") this.#runtime.remove(uid, chosen.id);
    else if (what === "start" && chosen.state === "created")
      this.#runtime.set(uid, chosen.id, "running", kind);
    else if (what !== "start") this.#runtime.set(uid, chosen.id, "exited", kind);
  }
}

function eventsByContainer(harness: Harness): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const emitted of harness.emitted()) {
    const [type, id] = emitted.split(" ") as [string, string];
    if (type !== "PodSync") found.set(id, [...(found.get(id) ?? []), type]);
  }
  return found;
}

/** States of all containers, by pod and id. */
function statesOf(runtime: MemoryRuntime): Map<string, Map<string, ContainerState>> {
  return new Map(
    [...runtime.pods].map(([uid, { containers }]) => [
      uid,
      new Map([...containers.values()].map(({ id, state }) => [id, state])),
    ]),
  );
}

function expectCacheAsRuntime({ runtime, generator }: Harness): void {
  expect(generator.statuses.uids().sort()).toEqual([...runtime.pods.keys()].sort());
  for (const [uid, states] of statesOf(runtime)) {
    const { status, error } = generator.statuses.get(uid);
    expect(error).toBeUndefined();
    expect(new Map([...status.containers, ...status.sandboxes].map(({ id, state }) => [id, state]))).toEqual(
      states,
    );
  }
}

describe("random histories, read by relists", () => {
  const step = fc.record({
    changes: fc.array(change, { maxLength: 6 }),
    listFails: fc.boolean(),
    failing: fc.subarray(uids),
  });

  // The model: of each pod the last reading that was emitted, and the table of kubelet pleg/generic.go between that and the next.
  class Model {
    readonly events: string[][] = [];
    readonly #emitted = new Map<string, Map<string, string>>();
    /** The last list of each pod whose inspection failed since. */
    readonly #failed = new Map<string, Map<string, string>>();

    relist(
      readings: Map<string, Map<string, ContainerState>>,
      failing: readonly string[],
      silent: boolean,
    ): void {
      const found: string[] = [];
      for (const uid of new Set([...this.#emitted.keys(), ...readings.keys(), ...this.#failed.keys()])) {
        const old = this.#emitted.get(uid) ?? new Map<string, string>();
        const now = new Map(
          [...(readings.get(uid) ?? [])].map(([id, s]) => [id, s === "created" ? "unknown" : s]),
        );
        const ids = new Set([...old.keys(), ...now.keys()]);
        const changed =
          [...ids].some((id) => old.get(id) !== now.get(id)) || this.#emitted.has(uid) !== readings.has(uid);
        if (!changed && !this.#failed.has(uid)) continue;
        if (readings.has(uid) && failing.includes(uid)) {
          this.#failed.set(uid, now);
          continue;
        }
        const before = found.length;
        const compare = (from: Map<string, string>, to: Map<string, string>) => {
          for (const id of new Set([...from.keys(), ...to.keys()])) {
            const [was, is] = [from.get(id), to.get(id)];
            if (was === is) continue;
            if (is === "running") found.push(`Started ${id}`);
            if (is === "exited" || (is === undefined && was !== "exited")) found.push(`Died ${id}`);
            if (is === undefined) found.push(`Removed ${id}`);
          }
        };
        // Of a pod that was removed before it could be inspected, the last list counts.
        const listed = readings.has(uid) ? undefined : this.#failed.get(uid);
        if (listed) compare(old, listed);
        compare(listed ?? old, now);
        if (listed || (found.length === before && this.#failed.has(uid))) found.push(`PodSync ${uid}`);
        this.#failed.delete(uid);
        if (readings.has(uid)) this.#emitted.set(uid, now);
        else this.#emitted.delete(uid);
      }
      this.events.push(silent ? [] : found);
    }
  }

  it("the log has exactly what the model emits, relist by relist, and the cache is the runtime's state", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const harness = createHarness();
        const { runtime, clock } = harness;
        const node = new Node(runtime);
        const model = new Model();
        await harness.start();
        model.relist(new Map(), [], true);
        for (const { changes, listFails, failing } of [
          ...steps,
          { changes: [], listFails: false, failing: [] },
        ]) {
          for (const change of changes) node.play(change);
          runtime.before = (call, uid) => {
            if (call === "listPods" && listFails) throw new NodekeeperError("unavailable", "no list");
            if (call === "podStatus" && failing.includes(uid))
              throw new NodekeeperError("internal", "no status");
          };
          const before = harness.emitted().length;
          await clock.step(1_000);
          if (!listFails) model.relist(statesOf(runtime), failing, false);
          const expected = listFails ? [] : model.events.at(-1)!;
          const emitted = harness.emitted().slice(before);
          expect([...emitted].sort()).toEqual([...expected].sort());
          for (const id of new Set(emitted.map((line) => line.split(" ")[1]))) {
            const of = (lines: string[]) => lines.filter((line) => line.endsWith(` ${id}`));
            expect(of(emitted)).toEqual(of(expected));
          }
        }
        expectCacheAsRuntime(harness);
        await harness.stop();
        expect(clock.timers).toBe(0);
      }),
      { numRuns: inputs(150) },
    );
  });
});

describe("random histories, read by relists and hints at once", () => {
  const delivery = fc.constantFrom("once", "once", "once", "lost", "doubled", "late" as const);
  const step = fc.record({
    changes: fc.array(fc.tuple(change, delivery), { maxLength: 5 }),
    waitMs: fc.constantFrom(0, 1, 7, 30, 400, 1_100),
    listMs: fc.constantFrom(0, 5, 50, 900),
    arriveMs: fc.constantFrom(0, 5, 50),
    statusMs: fc.constantFrom(0, 3, 40, 2_500),
    failing: fc.option(fc.constantFrom("listPods", "listPod", "podStatus", "stream"), { nil: undefined }),
    settle: fc.boolean(),
  });

  // What may be emitted of one container, in order; and what must have been emitted by the time all is quiet.
  const legal = /^(Started )?(Died (Removed )?)?$/;
  const wanted: Record<ContainerState, RegExp> = {
    created: /^$/,
    running: /^Started $/,
    exited: /^(Started )?Died $/,
    unknown: /^$/,
  };

  it("each change is emitted once and in order, none is missing when all is quiet, and the cache is right", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(3, 1_000),
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (relistPeriod, steps) => {
          // At these periods a list is nearly always under way while hints have pods read.
          const harness = createHarness({ settings: { relistPeriod, eventedRelistPeriod: 20 } });
          const { runtime, clock } = harness;
          runtime.events = "on";
          const node = new Node(runtime);
          const seen = new Set<string>();
          await harness.start();
          await clock.step(2_000);
          let late: string[] = [];
          for (const current of [...steps, { ...steps[0]!, changes: [], settle: true }]) {
            const { changes, waitMs, listMs, arriveMs, statusMs, failing, settle } = current;
            runtime.before = async (call, _, signal) => {
              if (call === failing) throw new NodekeeperError("unavailable", `${call} fails`);
              if (call === "listPods" || call === "listPod") await runtime.delay(listMs, signal);
              if (call === "podStatus") await runtime.delay(statusMs, signal);
            };
            // The answer is made at one moment and arrives at another.
            runtime.after = (call) => (call.startsWith("list") ? clock.sleep(arriveMs) : undefined);
            if (failing === "stream") runtime.endStreams(new NodekeeperError("unavailable", "reset"));
            for (const [change, delivery] of changes) {
              node.play(change);
              if (delivery === "once" || delivery === "doubled") runtime.hint(change.uid);
              if (delivery === "doubled") runtime.hint(change.uid);
              if (delivery === "late") late.push(change.uid);
              await clock.step(1);
            }
            await clock.step(waitMs);
            for (const uid of late.reverse()) runtime.hint(uid);
            late = [];
            const chains = eventsByContainer(harness);
            for (const [, types] of chains) expect(types.map((type) => `${type} `).join("")).toMatch(legal);
            if (!settle) continue;
            runtime.before = () => {};
            runtime.after = () => {};
            await clock.step(4_000);
            const states = new Map([...statesOf(runtime).values()].flatMap((containers) => [...containers]));
            const quiet = eventsByContainer(harness);
            for (const [id, state] of states) {
              seen.add(id);
              expect((quiet.get(id) ?? []).map((type) => `${type} `).join("")).toMatch(wanted[state]);
            }
            for (const id of new Set([...seen, ...quiet.keys()])) {
              if (!states.has(id)) expect(quiet.get(id)?.at(-1)).toBe("Removed");
            }
            expectCacheAsRuntime(harness);
          }
          await harness.stop();
          expect([clock.timers, runtime.streams]).toEqual([0, 0]);
        },
      ),
      { numRuns: inputs(100) },
    );
  });
});

describe("random histories over restarts of the agent", () => {
  const step = fc.record({
    before: fc.array(change, { maxLength: 4 }),
    /** While the agent is stopped; undefined: it is not restarted. */
    away: fc.option(fc.array(change, { maxLength: 4 }), { nil: undefined }),
    failing: fc.option(fc.constantFrom("listPods", "podStatus"), { nil: undefined }),
  });

  it("after the first list of each the cache is the runtime's state, and each change is emitted once", async () => {
    const directory = mkdtempSync(join(tmpdir(), "nodekeeper-history-"));
    let run = 0;
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
          const place = join(directory, String(run++));
          const database = StateDatabase.open({
            directory: place,
            clock: new FakeClock(),
            log: silentLogger,
          });
          const store = new LifecycleStore(database);
          const runtime = new MemoryRuntime();
          const node = new Node(runtime);
          let harness = createHarness({ runtime, store });
          await harness.start();
          for (const { before, away, failing } of steps) {
            for (const each of before) node.play(each);
            runtime.before = (call) => {
              if (call === failing) throw new NodekeeperError("unavailable", `${call} fails`);
            };
            await harness.clock.step(1_000);
            if (away) {
              await harness.stop();
              for (const each of away) node.play(each);
              harness = createHarness({ runtime, store });
              await harness.start();
            }
            runtime.before = () => {};
            await harness.clock.step(1_000);
            expectCacheAsRuntime(harness);
            const emitted = eventsByContainer(harness);
            for (const types of emitted.values())
              expect(types.map((type) => `${type} `).join("")).toMatch(/^(Started )?(Died (Removed )?)?$/);
            for (const [id, state] of [...statesOf(runtime).values()].flatMap((states) => [...states])) {
              if (state === "running") expect(emitted.get(id)).toEqual(["Started"]);
              if (state === "exited") expect(emitted.get(id)?.at(-1)).toBe("Died");
            }
          }
          await harness.stop();
          database.close();
        }),
        { numRuns: inputs(20) },
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
