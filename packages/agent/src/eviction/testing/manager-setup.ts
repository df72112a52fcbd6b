import type { EventInput } from "@nodekeeper/core/kube";
import { type BootTime, type Clock, FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { defaultEvictionSettings } from "../../assembly/testing/defaults.ts";
import { EvictionStore, type NewMark, SignalStore, StateDatabase } from "../../state/index.ts";
import { DecisionEffects } from "../act/decision-effects.ts";
import { Notifier } from "../act/notifier.ts";
import { EvictionPlugins } from "../ask/plugins.ts";
import type { EvictionSource } from "../ask/source.ts";
import { BlockedEvictions } from "../blocked-evictions.ts";
import { EvictionLedger } from "../ledger.ts";
import { EvictionManager } from "../manager.ts";
import { createEvictionMetrics } from "../metrics.ts";
import type { NodePods } from "../parts.ts";
import { EvictionRecords } from "../records/records.ts";
import { RoundPacing } from "../round-pacing.ts";
import { SignalHistory } from "../signal-history.ts";
import { FakeCondition, FakeEvictor, FakeTainter } from "./round-parts.ts";
import { evictPod, testNode, testPolicy, testThreshold } from "./rounds.ts";

/** Returns an in-tree plugin with scripted answers. */
export function sourceOf(name: string, changes: Partial<EvictionSource> = {}): EvictionSource {
  return {
    name,
    getEvictPods: async () => ({ pods: [], condition: null }),
    thresholdMet: async () => testThreshold(),
    getTopEvictionPods: async () => ({ pods: [], gracePeriodSeconds: null }),
    ...changes,
  };
}

/** The eviction parts of one agent process, on a state directory. */
export class TestAgent<C extends Clock = FakeClock> implements Disposable {
  readonly clock: C;
  readonly registry = new Registry();
  readonly metrics = createEvictionMetrics(this.registry);
  readonly database: StateDatabase;
  readonly records: EvictionRecords;
  readonly plugins: EvictionPlugins;
  readonly ledger: EvictionLedger;
  readonly evictor: FakeEvictor;
  readonly pacing: RoundPacing;
  readonly tainter = new FakeTainter();
  readonly condition = new FakeCondition();
  readonly events: EventInput[] = [];
  readonly nodeEvents: string[] = [];
  readonly marks: NewMark[] = [];
  /** The number of times that the host's readings were discarded. */
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
    bootDirectory?: string,
  ) {
    this.clock = clock;
    this.database = StateDatabase.open({ directory, bootDirectory, clock, log: silentLogger });
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
    this.ledger = new EvictionLedger({
      records: this.records,
      signals: new SignalHistory({ store: new SignalStore(this.database), ...common }),
      bootTime: () => this.bootTime,
      metrics: this.metrics,
      ...common,
    });
    this.evictor = new FakeEvictor(this.ledger);
    this.pacing = new RoundPacing(clock, () => this.settings.outOfTurnRounds);
    const effects = new DecisionEffects({
      tainter: this.tainter,
      blocked: new BlockedEvictions(this.condition),
      notifiers: [new Notifier({ record: (event) => void this.events.push(event) }, clock)],
      history: { addNodeEvent: (message) => void this.nodeEvents.push(message) },
      ...common,
    });
    this.manager = new EvictionManager({
      context: {
        nodeName: testNode,
        settings: () => this.settings,
        policy: () => this.policy,
        marks: {
          add: (marks) => void this.marks.push(...marks),
          addMissing: (mark) => void this.marks.push(mark),
        },
        metrics: this.metrics,
        ...common,
      },
      pods,
      plugins: this.plugins,
      evictor: this.evictor,
      ledger: this.ledger,
      effects,
      pacing: this.pacing,
      host: { refresh: () => void this.refreshes++ },
    });
  }

  start(): void {
    this.#running = this.manager.run(this.#stop.signal);
  }

  /** Starts the agent, or advances the clock by one period. */
  async round(): Promise<void> {
    const { clock } = this;
    if (!(clock instanceof FakeClock)) throw new Error("rounds are played on a fake clock");
    if (this.#running) return await clock.step(this.settings.syncPeriod);
    this.start();
    await clock.step(0);
  }

  /** Ends like SIGKILL: nothing more is written, even if work is in progress. */
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

/** Returns a plugin that requests hard eviction of these pods. */
export const forcing = (...names: string[]) =>
  sourceOf("forcing", {
    getEvictPods: async () => ({
      pods: names.map((name) => evictPod(name, { force: true })),
      condition: null,
    }),
  });

/** A met hard threshold. */
export const hard = testThreshold({ metType: "hard", observedValue: 0.95 });
