import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { decide } from "@nodekeeper/api/decide";
import type { EvictionStep, NodePod } from "@nodekeeper/api/records";
import { defaultConfiguration } from "@nodekeeper/api/settings";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { createArchive } from "../packages/agent/src/archive/index.ts";
import { EvictionRecords } from "../packages/agent/src/eviction/index.ts";
import { evictPod, TestRounds, testPod } from "../packages/agent/src/eviction/testing/rounds.ts";
import { EvictionStore, HistoryStore, StateDatabase } from "../packages/agent/src/state/index.ts";

const PODS = 110;
const BOUNDS = { maxAgeMs: 7 * 86_400_000, mostLeft: 1_000 };

export interface ArchiveNodeOptions {
  name: string;
  /** Of the state database. */
  directory: string;
  /** Of the collector. */
  endpoint: string;
  protocol: "http" | "grpc";
}

/** One node's records in a state database, and the exporter of the agent. Its evictions are written as the agent does. */
export class ArchiveNode {
  readonly #rounds: TestRounds;
  readonly #database: StateDatabase;
  readonly #records: EvictionRecords;
  readonly #controller = new AbortController();
  readonly #exporting: Promise<void>;
  readonly registry = new Registry();

  constructor({ name: nodeName, directory, endpoint, protocol }: ArchiveNodeOptions) {
    mkdirSync(directory, { recursive: true });
    const [clock, log] = [systemClock, silentLogger];
    this.#rounds = new TestRounds(Array.from({ length: PODS }, () => testPod(`web-${randomUUID()}`)));
    this.#database = StateDatabase.open({ directory, clock, log });
    const { archive, eviction } = defaultConfiguration();
    const common = { recordSettings: () => eviction.records, database: this.#database, clock, log };
    const store = new EvictionStore(this.#database);
    this.#records = new EvictionRecords({ store, settings: common.recordSettings, clock, log });
    const exporter = createArchive({
      ...common,
      settings: { ...archive, endpoint, protocol },
      registry: this.registry,
      version: "1.0.0",
      nodeName,
      nodeUid: async () => randomUUID(),
    });
    this.#exporting = exporter.run(this.#controller.signal);
  }

  /** Evicts a pod, which takes about two seconds to terminate. */
  async evict(): Promise<void> {
    const rounds = this.#rounds;
    const pod = rounds.pods[0]!;
    const selectedAt = this.#play({ p: { pods: [evictPod(pod.uid, { force: true })] } }, []);
    rounds.accept(pod.uid);
    await systemClock.sleep(2_000 * (0.5 + Math.random()));
    const endedAt = Date.now();
    rounds.pods = [...rounds.pods.slice(1), testPod(`web-${randomUUID()}`)];
    rounds.outcomes = [
      {
        ...{ uid: pod.uid, namespace: pod.namespace, name: pod.name, result: "terminated" },
        ...{ message: "pod deleted", sent: true, selectedAt, acceptedAt: selectedAt + 20, endedAt },
      },
    ];
    this.#play({ p: {} }, [
      { uid: pod.uid, at: selectedAt + 20, message: "POST eviction: 201 Created" },
      { uid: pod.uid, at: selectedAt + 21, message: "accepted, waiting for its termination" },
      { uid: pod.uid, at: endedAt, message: "pod deleted" },
    ]);
    this.#addEnd({
      ...{ uid: pod.uid, namespace: pod.namespace, name: pod.name, seenAt: selectedAt, leftAt: endedAt },
      ...{ pod, lastKnownAt: null },
      ending: {
        deletion: { requestedAt: selectedAt + 20, gracePeriodSeconds: 30 },
        disruption: {
          reason: "EvictionByEvictionAPI",
          message: "Eviction API: evicting",
          at: selectedAt + 20,
        },
        ...{ phase: "Running", reason: "", message: "" },
      },
      exits: [{ id: "0".repeat(64), name: "main", exitCode: 143, reason: "Error", at: endedAt }],
    });
  }

  // Returns the time of the round.
  #play(plugins: Parameters<TestRounds["input"]>[0], steps: EvictionStep[]): number {
    this.#rounds.now = Date.now();
    const input = this.#rounds.input(plugins);
    const decision = decide(input);
    this.#rounds.state = decision.state;
    this.#rounds.outcomes = [];
    this.#records.save({ id: this.#records.nextId, input, decision }, steps);
    return input.now;
  }

  #addEnd({ uid, namespace, name, seenAt, leftAt, ...rest }: NodePod): void {
    const stored = { uid, namespace, name, seenAt, leftAt, record: JSON.stringify(rest) };
    const change = { pods: [stored], events: [], watchedAt: Date.now(), cursor: null };
    new HistoryStore(this.#database).save(change, BOUNDS);
  }

  async stop(): Promise<void> {
    this.#controller.abort(stopped("over"));
    await this.#exporting;
    this.#database.close();
  }
}
