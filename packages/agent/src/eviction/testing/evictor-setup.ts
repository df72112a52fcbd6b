import type { EvictionOutcome, PendingEviction, Victim } from "@nodekeeper/api/decide";
import { ApiStatusError, type EventInput, type KubeObject } from "@nodekeeper/core/kube";
import {
  createWorkQueueMetrics,
  FakeClock,
  NodekeeperError,
  Registry,
  silentLogger,
} from "@nodekeeper/core/lib";
import { afterEach, expect } from "vitest";
import { EvictionSender } from "../act/eviction-sender.ts";
import { PodEvictor } from "../act/evictor.ts";
import type { KillEnd, Killer, KillerName, KillRequest, KillResult } from "../act/killer.ts";
import type { EvictionContext } from "../context.ts";
import { createEvictionMetrics } from "../metrics.ts";
import { type EncodablePod, observeJson } from "../observe/observed-pod.ts";
import type { NodePods } from "../parts.ts";
import { jsonPod } from "./round-parts.ts";
import { testNode, testPolicy } from "./rounds.ts";
import { TestLedger } from "./test-ledger.ts";

/** Returns the API server's 404 for a missing pod. */
export function noSuchPod(name: string, kind = "pods"): ApiStatusError {
  return statusError(404, "notFound", { kind, name });
}

/** Returns an error response of the API server. */
export function statusError(
  httpStatus: number,
  code: NodekeeperError["code"],
  summary: Partial<ApiStatusError["summary"]> = {},
  retryAfterMs?: number,
): ApiStatusError {
  const whole = { reason: "", kind: "", name: "", causes: [], ...summary };
  return new ApiStatusError(code, `${httpStatus}`, { httpStatus, summary: whole }, retryAfterMs);
}

export const unavailable = new NodekeeperError("unavailable", "connection refused");

export function victim(name: string, changes: Partial<Victim> = {}): Victim {
  return {
    uid: name,
    namespace: "default",
    name,
    order: 1,
    kind: "forced",
    plugin: "pressure",
    scope: "memory",
    reason: "memory 0.9 > threshold 0.8",
    gracePeriodSeconds: null,
    asks: [],
    ...changes,
  };
}

export function pending(name: string, changes: Partial<PendingEviction> = {}): PendingEviction {
  const { order: _order, asks: _asks, ...rest } = victim(name);
  const progress = { since: 0, sendingAt: 0, acceptedAt: 0, deadline: 60_000 };
  return { ...rest, source: "threshold", ...progress, ...changes };
}

/** An evictor with a node's pods at an API server that a test scripts. */
export class TestEvictor implements NodePods {
  readonly clock = new FakeClock();
  readonly registry = new Registry();
  readonly pods = new Map<string, KubeObject>();
  readonly events: EventInput[] = [];
  readonly ended: string[] = [];
  /** Every call that reached a killer, in order. */
  readonly kills: KillRequest[] = [];
  /** UIDs of pods that the evictor found to be gone. */
  readonly forgotten: string[] = [];
  /** UIDs of pods whose containers are waited for because the pod was deleted. */
  readonly awaited: string[] = [];
  /** The names of pods that were read. */
  readonly reads: string[] = [];
  readonly ledger = new TestLedger(this.clock);
  readonly evictor: PodEvictor;
  isSynced = true;
  /** UIDs of pods that the watch does not have. */
  readonly unwatched = new Set<string>();
  /** Names of the running containers of every pod; undefined if no runtime is used. */
  running: string[] | undefined;
  killer: KillerName = "evictionApi";
  policy = testPolicy();
  /** Replaces the response of a read; undefined to return the pod. */
  onRead: (name: string) => Promise<KubeObject> | undefined = () => undefined;
  /** Returns the killer's result. */
  onKill: (request: KillRequest, signal: AbortSignal) => Promise<KillResult> = async () => ({
    kind: "accepted",
    message: "POST eviction: accepted",
  });
  readonly #listeners = new Set<(uid: string) => void>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(
    names: readonly string[],
    running?: string[],
    killersOf: (test: TestEvictor) => readonly Killer[] = () => [],
  ) {
    this.running = running;
    for (const name of names) this.put(name);
    const { clock, registry } = this;
    const metrics = createEvictionMetrics(registry);
    const events = { record: (event: EventInput) => void this.events.push(event) };
    const killer: Killer = {
      name: "evictionApi",
      kill: async (request, signal) => {
        if (!request.sending()) return { kind: "unsent" };
        this.kills.push(request);
        return await this.onKill(request, signal);
      },
    };
    const sender = new EvictionSender({
      client: { get: async (_resource, name) => await (this.onRead(name) ?? this.#read(name)) },
      nodeName: testNode,
      killers: [killer, ...killersOf(this)],
      settings: () => ({ killer: this.killer, killerRules: [] }),
      policy: () => this.policy,
      clock,
      metrics,
    });
    const marks: EvictionContext["marks"] = {
      add: (made) => void this.ended.push(...made.map(({ title }) => title.replace(/^\S+ /, ""))),
      addMissing: () => {},
    };
    const queueMetrics = createWorkQueueMetrics(registry);
    const policy = () => this.policy;
    this.evictor = new PodEvictor({
      context: { marks, policy, events, clock, log: silentLogger, metrics, queueMetrics },
      ledger: this.ledger,
      sender,
      pods: this,
      containers: running && {
        run: async () => {},
        follow: () => {},
        forget: () => {},
        podDeleted: ({ uid }) => void this.awaited.push(uid),
        running: () => this.running ?? [],
      },
    });
  }

  put(name: string, changes: Parameters<typeof jsonPod>[1] = {}): void {
    this.pods.set(name, jsonPod(name, changes) as KubeObject);
  }

  /** Marks the pod as terminating, like an API server that accepts an eviction. */
  terminate(name: string, metadata: object = {}): void {
    this.put(name, { metadata: { deletionTimestamp: "2023-11-14T22:13:20Z", ...metadata } });
  }

  /** Deletes the pod and reports it through the watch. */
  remove(name: string): void {
    this.pods.delete(name);
    this.reportDeleted(name);
  }

  /** Reports through the watch that the pod with this UID is deleted. */
  reportDeleted(uid: string): void {
    for (const listener of this.#listeners) listener(uid);
  }

  start(): void {
    this.#running = this.evictor.run(this.#stop.signal);
  }

  /** Starts evictions and runs them until they wait for time to pass. */
  async evict(...victims: Victim[]): Promise<void> {
    if (!this.#running) this.start();
    this.evictor.start(victims);
    await this.clock.step(0);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Returns the outcomes since the last call, as "name result". */
  outcomes(): string[] {
    return this.ledger.takeOutcomes().map(({ uid, result }) => `${uid} ${result}`);
  }

  outcome(): EvictionOutcome | undefined {
    return this.ledger.takeOutcomes()[0];
  }

  steps(): string[] {
    return this.ledger.takeSteps().map(({ message }) => message);
  }

  killed(): string[] {
    return this.kills.map(({ pod }) => pod.name);
  }

  list(): EncodablePod[] {
    return [...this.pods.values()].map((object) => observeJson(object));
  }

  get(uid: string): EncodablePod | undefined {
    if (this.unwatched.has(uid)) return undefined;
    const object = [...this.pods.values()].find(({ metadata }) => metadata.uid === uid);
    return object && observeJson(object);
  }

  forget(uid: string): void {
    this.forgotten.push(uid);
  }

  onDeleted(listener: (uid: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  async #read(name: string): Promise<KubeObject> {
    this.reads.push(name);
    const object = this.pods.get(name);
    if (object === undefined) throw noSuchPod(name);
    return object;
  }
}

/**
 * Returns a function that creates evictors for the tests of a file, for pods with the given names. After each test,
 * stops them and checks that they left no timers or listeners.
 * @param running containers of every pod; undefined if no runtime is used
 * @param killersOf returns further killers
 */
export function testEvictors(): (
  ...parameters: Partial<ConstructorParameters<typeof TestEvictor>>
) => TestEvictor {
  const evictors: TestEvictor[] = [];
  afterEach(async () => {
    for (const test of evictors.splice(0)) {
      await test.stop();
      // Nothing outlives `run`.
      expect(test.clock.timers).toBe(0);
      expect(test.listeners).toBe(0);
    }
  });
  return (names = [], running, killersOf) => {
    const test = new TestEvictor(names, running, killersOf);
    evictors.push(test);
    return test;
  };
}

/** Returns the result of a failed attempt that is retried. */
export const again = (changes: Partial<Extract<KillEnd, { kind: "retry" }>> = {}): KillEnd => ({
  kind: "retry",
  message: "503",
  retryAfterMs: undefined,
  maybeSent: false,
  ...changes,
});
