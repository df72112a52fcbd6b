import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ArchivedRecord,
  explainArchivedPod,
  inOrder,
  readRecord,
  SCHEMA_VERSION,
} from "@nodekeeper/api/archive";
import { decide, type EvictionOutcome } from "@nodekeeper/api/decide";
import type { EvictionStep, NodePod } from "@nodekeeper/api/records";
import { timelineOf, verdictOf } from "@nodekeeper/api/wording";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { EvictionRecords, RecordQueries } from "../../eviction/index.ts";
import { storedOf } from "../../eviction/records/pod-history.ts";
import { evictPod, TestRounds, testPod } from "../../eviction/testing/rounds.ts";
import { ArchiveStore, EvictionStore, HistoryStore, StateDatabase } from "../../state/index.ts";
import { archiveSources } from "../archive.ts";
import { RecordBuilder } from "./record-builder.ts";

const NAMES = ["a", "b", "c"];

/** What happens before a round. */
const event = fc.record({
  kind: fc.constantFrom("request", "requestStatic", "accept", "fail", "delete", "deleteByOther", "nothing"),
  pod: fc.constantFrom(...NAMES),
  seconds: fc.integer({ min: 1, max: 90 }),
  isExported: fc.boolean(),
});
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

/** A node's records, and what of them was exported. */
class World {
  readonly #directory = mkdtempSync(join(tmpdir(), "nk-words-"));
  readonly #clock = new FakeClock();
  readonly #database = StateDatabase.open({
    ...{ directory: this.#directory, clock: this.#clock, log: silentLogger },
  });
  readonly #history = new HistoryStore(this.#database);
  readonly #queue = new ArchiveStore(this.#database, this.#clock, "node-1");
  readonly #records = new EvictionRecords({
    store: new EvictionStore(this.#database),
    settings: () => ({ maxAge: 1e12, maxSize: 1e9 }),
    ...{ clock: this.#clock, log: silentLogger },
  });
  readonly #rounds = new TestRounds([
    ...NAMES.map((name) => testPod(name)),
    testPod("static", { isStatic: true }),
  ]);
  readonly #builder = new RecordBuilder(archiveSources(this.#database, this.#records), false);
  readonly queries = new RecordQueries(this.#records, this.#history);
  readonly exported: ArchivedRecord[] = [];
  /** UIDs of the pods of records, by record. */
  readonly uids = new Map<string, string>();
  readonly ended = new Set<string>();
  /** Times at which pods were selected, and whether a request was accepted. */
  readonly #open = new Map<string, { selectedAt: number; acceptedAt?: number }>();

  constructor() {
    this.#rounds.now = this.#clock.now();
    this.#queue.start();
  }

  async play({ kind, pod, seconds, isExported }: Event): Promise<void> {
    await this.#clock.step(seconds * 1_000);
    this.#rounds.now = this.#clock.now();
    const steps: EvictionStep[] = [];
    const say = (message: string) => void steps.push({ uid: pod, at: this.#clock.now(), message });
    const open = this.#open.get(pod);
    const isPending = this.#rounds.state.pending.some(({ uid }) => uid === pod);
    const end = (result: EvictionOutcome["result"], message: string, sent: boolean) => {
      const { selectedAt, acceptedAt } = open!;
      this.#rounds.outcomes.push({
        ...{ uid: pod, namespace: "default", name: pod, result, message, sent, selectedAt },
        ...(acceptedAt === undefined ? {} : { acceptedAt, endedAt: this.#clock.now() }),
      });
      this.#open.delete(pod);
      say(message);
    };
    if (kind === "accept" && open && isPending && open.acceptedAt === undefined) {
      this.#rounds.accept(pod);
      open.acceptedAt = this.#clock.now();
      say("POST eviction: accepted");
    } else if (kind === "fail" && open && open.acceptedAt === undefined) end("failed", "denied", false);
    else if (kind === "delete" && open?.acceptedAt !== undefined) {
      end("terminated", "pod deleted", true);
      this.#leave(pod);
    } else if (kind === "deleteByOther" && !open && !this.ended.has(pod)) this.#leave(pod);
    const isThere = this.#rounds.pods.some(({ uid }) => uid === pod);
    const asks = [
      ...(kind === "request" && isThere ? [evictPod(pod, { force: true })] : []),
      ...(kind === "requestStatic" ? [evictPod("static", { force: true })] : []),
    ];
    this.#decide(asks, steps);
    if (isExported) await this.export();
  }

  #decide(pods: ReturnType<typeof evictPod>[], steps: EvictionStep[]): void {
    const input = this.#rounds.input({ p: { pods } });
    const decision = decide(input);
    this.#rounds.state = decision.state;
    this.#rounds.outcomes = [];
    this.#records.save({ id: this.#records.nextId, input, decision }, steps);
    for (const { uid } of decision.victims) this.#open.set(uid, { selectedAt: input.now });
  }

  #leave(name: string): void {
    const { labels: _labels, annotationKeys: _keys, ...pod } = testPod(name);
    const leftAt = this.#clock.now();
    const deletion = { requestedAt: leftAt - 500, gracePeriodSeconds: 30 };
    const gone: NodePod = {
      ...{ uid: name, namespace: "default", name, seenAt: leftAt - 1e6, leftAt, lastKnownAt: null, pod },
      ending: { deletion, disruption: null, phase: "Running", reason: "", message: "" },
      exits: [{ id: "1", name: "app", exitCode: 143, reason: "", at: leftAt - 100 }],
    };
    const events = [{ uid: name, at: leftAt - 50, message: "sandbox stopped" }];
    const change = { pods: [storedOf(gone)], events, watchedAt: leftAt, cursor: null };
    this.#history.save(change, { maxAgeMs: 1e12, mostLeft: 1_000 });
    this.#rounds.remove(name);
    this.ended.add(name);
  }

  /** Exports what is queued, as the store returns it. */
  async export(): Promise<void> {
    for (const row of this.#queue.next(0, 1_000)) {
      for (const { id, event, at, body, attributes } of (await this.#builder.build(row))!) {
        const values = { ...attributes, "nodekeeper.record.id": id, "k8s.node.name": "node-1" };
        const fields = Object.fromEntries(
          Object.entries({ ...values, "nodekeeper.schema.version": SCHEMA_VERSION })
            .filter(([, value]) => value !== undefined)
            .map(([name, value]) => [name, String(value)]),
        );
        const record = readRecord({ time: new Date(at).toISOString(), event, body, fields });
        if ("problem" in record) throw new Error(record.problem);
        this.exported.push(record);
        this.uids.set(id, fields["k8s.pod.uid"] ?? "");
      }
      this.#queue.remove(row.id);
    }
  }

  close(): void {
    this.#database.close();
    rmSync(this.#directory, { recursive: true });
  }
}

it("a pod that has left is explained from the archive in the words of the node", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 40 }), async (events) => {
      const world = new World();
      try {
        for (const each of events) await world.play(each);
        await world.export();
        const all = inOrder(world.exported);
        const times = all.map(({ at }) => at);
        const node = { name: "node-1", oldest: Math.min(...times), newest: Math.max(...times), gaps: [] };
        for (const uid of world.ended) {
          const own = await world.queries.explainPod(uid, new AbortController().signal);
          const ofPod = all.filter(({ id }) => world.uids.get(id) === uid);
          const archived = explainArchivedPod(uid, ofPod, node)!;
          expect(verdictOf(archived)).toEqual(verdictOf(own));
          expect(timelineOf(archived)).toEqual(timelineOf(own));
          const decided = (explanation: typeof own) =>
            explanation.rounds.filter(({ victim, outcome }) => victim !== null || outcome !== null);
          expect(decided(archived)).toEqual(decided(own));
        }
      } finally {
        world.close();
      }
    }),
    { numRuns: 25 },
  );
});
