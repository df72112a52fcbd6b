import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import { type Clock, Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import {
  defaultEvictionSettings,
  liveEvictionPolicy,
} from "../packages/agent/src/assembly/testing/defaults.ts";
import {
  createEvictionMetrics,
  DecisionEffects,
  type EncodablePod,
  EvictionLedger,
  EvictionManager,
  EvictionPlugins,
  EvictionRecords,
  observeJson,
  RoundPacing,
  SignalHistory,
} from "../packages/agent/src/eviction/index.ts";
import { EvictionStore, SignalStore, StateDatabase } from "../packages/agent/src/state/index.ts";

/** The round with everything real but the pods' watch and what acts. */
export class EvictionPart {
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #database: StateDatabase;
  readonly #directory: string;
  #done = 0;
  #waiting: { from: number; resolve: () => void } | undefined;
  #wake = () => {};

  private constructor(plugins: EvictionPlugins, objects: KubeObject[], nodeName: string) {
    this.#directory = mkdtempSync(join(tmpdir(), "nkb-state-"));
    const common = { clock: systemClock, log: silentLogger };
    this.#database = StateDatabase.open({ directory: this.#directory, ...common });
    const pods: EncodablePod[] = objects.map((object) => observeJson(object));
    const metrics = createEvictionMetrics(new Registry());
    const policy = structuredClone(liveEvictionPolicy);
    // Of the pacing alone: a round begins when the benchmark starts it, not when time passes.
    const clock: Clock = {
      ...systemClock,
      after: (_ms, callback) => {
        this.#wake = callback;
        this.#done++;
        if (this.#waiting && this.#done >= this.#waiting.from) this.#waiting.resolve();
        return { cancel: () => {} };
      },
    };
    const records = new EvictionRecords({
      store: new EvictionStore(this.#database),
      settings: () => defaultEvictionSettings.records,
      ...common,
    });
    const signals = new SignalHistory({ store: new SignalStore(this.#database), ...common });
    const manager = new EvictionManager({
      context: {
        nodeName,
        settings: () => defaultEvictionSettings,
        policy: () => policy,
        marks: { add: () => {}, addMissing: () => {} },
        metrics,
        ...common,
      },
      pods: {
        isSynced: true,
        list: () => pods,
        get: () => undefined,
        forget: () => {},
        onDeleted: () => () => {},
      },
      plugins,
      evictor: {
        start: () => {},
        withdraw: () => {},
        resume: () => {},
        forbidden: undefined,
        reportInterrupted: () => {},
        reportEnded: () => {},
      },
      ledger: new EvictionLedger({ records, signals, bootTime: () => undefined, metrics, ...common }),
      effects: new DecisionEffects({
        tainter: { setDesired: () => {}, suspend: () => {} },
        blocked: { note: () => {} },
        notifiers: [],
        history: { addNodeEvent: () => {} },
        ...common,
      }),
      pacing: new RoundPacing(clock),
      host: { refresh: () => {} },
    });
    this.#running = manager.run(this.#stop.signal);
  }

  /** Registers plugins 0 to `count` - 1 of a directory and plays the first round. */
  static async start(
    directory: string,
    objects: KubeObject[],
    nodeName: string,
    count: number,
  ): Promise<EvictionPart> {
    const plugins = new EvictionPlugins({
      inTree: [],
      settings: () => defaultEvictionSettings,
      tokenCheck: () => undefined,
      clock: systemClock,
      log: silentLogger,
      metrics: createEvictionMetrics(new Registry()),
    });
    for (let at = 0; at < count; at++) {
      const name = `plugin-${at}`;
      const endpoint = join(directory, `${name}.sock`);
      const place = { endpoint, registrationSocket: endpoint, uid: 0, generation: 1 };
      const { signal } = new AbortController();
      await plugins.register({ type: "EvictionPlugin", name, versions: ["v1alpha1"], ...place }, signal);
    }
    const part = new EvictionPart(plugins, objects, nodeName);
    await part.#until(1);
    const failing = plugins.status().find(({ lastError }) => lastError !== undefined);
    if (failing) throw new Error(`${failing.name}: ${failing.lastError}`);
    return part;
  }

  async rounds(count: number): Promise<void> {
    for (let round = 0; round < count; round++) {
      const next = this.#done + 1;
      this.#wake();
      await this.#until(next);
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#database.close();
    rmSync(this.#directory, { recursive: true });
  }

  async #until(done: number): Promise<void> {
    if (this.#done >= done) return;
    await new Promise<void>((resolve) => {
      this.#waiting = { from: done, resolve };
    });
  }
}
