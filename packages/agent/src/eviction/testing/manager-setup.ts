import type { EventInput } from "@nodekeeper/core/kube";
import { type BootTime, type Clock, FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { defaultEvictionSettings } from "../../assembly/testing/defaults.ts";
import { EvictionStore, type NewMark, StateDatabase } from "../../state/index.ts";
import { EvictionPlugins } from "../ask/plugins.ts";
import type { EvictionSource } from "../ask/source.ts";
import { BlockedEvictions } from "../blocked-evictions.ts";
import { EvictionManager } from "../manager.ts";
import type { NodePods } from "../parts.ts";
import { EvictionRecords } from "../records/records.ts";
import { createEvictionRoundMetrics } from "../round-metrics.ts";
import { FakeCondition, FakeEvictor, FakeTainter } from "./round-parts.ts";
import { evictPod, testNode, testPolicy, testThreshold } from "./rounds.ts";

/** An in-tree plugin with scripted answers. */
export function sourceOf(name: string, changes: Partial<EvictionSource> = {}): EvictionSource {
  return {
    name,
    getEvictPods: async () => ({ pods: [], condition: null }),
    thresholdMet: async () => testThreshold(),
    getTopEvictionPods: async () => ({ pods: [], gracePeriodSeconds: null }),
    ...changes,
  };
}

/** One life of the agent, as far as eviction goes, on a state directory. */
export class TestAgent<C extends Clock = FakeClock> implements Disposable {
  readonly clock: C;
  readonly registry = new Registry();
  readonly metrics = createEvictionRoundMetrics(this.registry);
  readonly database: StateDatabase;
  readonly records: EvictionRecords;
  readonly plugins: EvictionPlugins;
  readonly evictor = new FakeEvictor();
  readonly tainter = new FakeTainter();
  readonly condition = new FakeCondition();
  readonly events: EventInput[] = [];
  readonly nodeEvents: string[] = [];
  readonly marks: NewMark[] = [];
  /** How often readings of the machine were to be taken again. */
  refreshes = 0;
  readonly manager: EvictionManager;
  settings = structuredClone(defaultEvictionSettings);
  policy = testPolicy();
  /** Boot ID and uptime of the machine. */
  bootTime: BootTime | undefined;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(
    directory: string,
    pods: NodePods,
    inTree: EvictionSource[] = [],
    clock = new FakeClock() as Clock as C,
  ) {
    this.clock = clock;
    this.database = StateDatabase.open({ directory, clock, log: silentLogger });
    const common = { clock, log: silentLogger };
    this.records = new EvictionRecords({
      store: new EvictionStore(this.database),
      settings: () => this.settings.records,
      ...common,
    });
    this.plugins = new EvictionPlugins({
      inTree,
      settings: () => this.settings,
      tokenCheck: () => undefined,
      metrics: this.metrics,
      ...common,
    });
    this.manager = new EvictionManager({
      nodeName: testNode,
      pods,
      plugins: this.plugins,
      evictor: this.evictor,
      tainter: this.tainter,
      blocked: new BlockedEvictions(this.condition),
      records: this.records,
      events: { record: (event) => void this.events.push(event) },
      onNodeEvent: (message) => void this.nodeEvents.push(message),
      onMarks: (marks) => void this.marks.push(...marks),
      settings: () => this.settings,
      policy: () => this.policy,
      bootTime: () => this.bootTime,
      onRoundStart: () => void this.refreshes++,
      metrics: this.metrics,
      ...common,
    });
  }

  start(): void {
    this.#running = this.manager.run(this.#stop.signal);
  }

  /** Starts, or continues by one period. */
  async round(): Promise<void> {
    const { clock } = this;
    if (!(clock instanceof FakeClock)) throw new Error("rounds are played on a fake clock");
    if (this.#running) return await clock.step(this.settings.syncPeriodMs);
    this.start();
    await clock.step(0);
  }

  /** Ends as by SIGKILL: nothing more is written, whatever is under way. */
  kill(): void {
    this.database.close();
    this.#stop.abort();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.database.close();
  }

  [Symbol.dispose](): void {
    this.kill();
  }
}

/** A plugin that requests these pods, forced. */
export const forcing = (...names: string[]) =>
  sourceOf("forcing", {
    getEvictPods: async () => ({
      pods: names.map((name) => evictPod(name, { force: true })),
      condition: null,
    }),
  });

/** A met hard threshold. */
export const hard = testThreshold({ metType: "hard", observedValue: 0.95 });
