import { seededRandom } from "../../../packages/testing/src/runtime/seeded-random.ts";
import type { Machine } from "../machine/machine.ts";
import { DriverActor } from "./drivers.ts";
import { EvictionActor } from "./eviction-plugins.ts";
import type { History } from "./history.ts";
import { putPod } from "./node.ts";
import type { PluginActor } from "./plugins.ts";
import { Reporter } from "./reporters.ts";
import type { World } from "./world.ts";

/** How often something of each kind comes or goes, in milliseconds. */
const PERIODS = {
  pods: 4_000,
  staticPods: 5_000,
  forcedDeletions: 12_000,
  devices: 6_000,
  reports: 9_000,
  pressure: 9_000,
  passingPlugins: 4_000,
  pluginRestarts: 9_000,
  driverRestarts: 11_000,
  consumers: 8_000,
  watches: 8_000,
  runtime: 12_000,
  kubelet: 11_000,
  reload: 9_000,
} as const;

type Kind = keyof typeof PERIODS;
const passing = ["passingReporters", "passingEvictionPlugins", "passingDrivers"] as const;

/** How often something came or went, by kind. */
export type Changes = Readonly<Record<Kind | (typeof passing)[number], number>>;

const STATIC_POD = "static-again";

// How long a plugin lives that is installed once.
const PASSING_MS = 8_000;

// Between the seeds of a world and of its churn.
const CHURN = 3_000_017;

/**
 * The years of a node in minutes: pods, devices, plugins, connections and watches come and go, and what the node has
 * stays the same. Nothing fails.
 */
export class Churn {
  readonly #world: World;
  readonly #random: () => number;
  readonly #counts: Record<keyof Changes, number>;
  // Drivers that are of another version than at the beginning.
  readonly #replaced = new Set<DriverActor>();

  constructor(world: World) {
    this.#world = world;
    this.#random = seededRandom(world.seed + CHURN);
    const kinds = [...(Object.keys(PERIODS) as Kind[]), ...passing];
    this.#counts = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<keyof Changes, number>;
  }

  get changes(): Changes {
    return this.#counts;
  }

  /**
   * Lets things come and go for a time, in milliseconds, among them each pod: of one that is older than the agent, the
   * agent remembers containers only when they change.
   */
  async warmUp(ms: number): Promise<void> {
    this.#world.machine.init.run(() => this.#world.deletePods());
    await this.run(ms);
  }

  /** Lets things come and go for a time, in milliseconds. */
  async run(ms: number): Promise<void> {
    const { machine } = this.#world;
    const until = machine.scheduler.now + ms;
    for (const kind of Object.keys(PERIODS) as Kind[]) this.#again(kind, until);
    await machine.scheduler.run(until);
    machine.init.run(() => this.#end());
  }

  #again(kind: Kind, until: number): void {
    const { machine } = this.#world;
    const waitMs = PERIODS[kind] * (0.5 + this.#random());
    machine.scheduler.after(waitMs, () => {
      if (machine.scheduler.now >= until) return;
      this.#counts[kind]++;
      machine.init.run(() => this.#acts[kind]());
      this.#again(kind, until);
    });
  }

  readonly #acts: Readonly<Record<Kind, () => void>> = {
    pods: () => this.#world.deletePod(),
    staticPods: () => this.#replaceStaticPod(),
    forcedDeletions: () => this.#world.devices.forceDelete(),
    devices: () => this.#pick(this.#world.devices.installed)?.exchange(),
    reports: () => this.#pick(this.#world.reporters)?.report(),
    pressure: () => this.#turnPressure(),
    passingPlugins: () => this.#pass(),
    pluginRestarts: () => this.#pick([...this.#world.reporters, ...this.#world.evictionPlugins])?.kill(),
    driverRestarts: () => this.#replaceDriver(this.#pick(this.#world.devices.installed)),
    consumers: () => this.#pick(this.#world.consumers)?.kill(),
    watches: () => {
      const { api } = this.#world;
      api.process.run(() => api.server.cutWatches());
    },
    runtime: () => void this.#world.runtime.restart(200),
    kubelet: () => this.#world.devices.restartKubelet(),
    reload: () => this.#world.agent.reload(),
  };

  #end(): void {
    const { api, evictionPlugins } = this.#world;
    for (const plugin of evictionPlugins) plugin.pressure = "none";
    api.process.run(() => api.store.delete("pods", STATIC_POD, "kube-system"));
    // Of a driver that reports health, the agent holds each device. Both counts are of the same version.
    for (const driver of this.#replaced) {
      this.#counts.driverRestarts++;
      this.#replaceDriver(driver);
    }
  }

  // Every second version reports health.
  #replaceDriver(driver: DriverActor | undefined): void {
    if (!driver) return;
    driver.replace();
    if (!this.#replaced.delete(driver)) this.#replaced.add(driver);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  // Its condition comes and goes; each pressure evicts a few pods.
  #turnPressure(): void {
    const plugin = this.#pick(this.#world.evictionPlugins);
    if (!plugin) return;
    plugin.hasCondition = true;
    plugin.pressure = plugin.pressure === "none" ? "soft" : "none";
  }

  // The kubelet creates a mirror pod for the manifest, whose hash is the UID that the runtime has.
  #replaceStaticPod(): void {
    const { api } = this.#world;
    const name = STATIC_POD;
    const hash = `hash-${this.#counts.staticPods}`;
    const annotations = {
      "kubernetes.io/config.source": "file",
      "kubernetes.io/config.hash": hash,
      "kubernetes.io/config.mirror": hash,
    };
    api.process.run(() => {
      if (api.store.get("pods", name, "kube-system")) api.store.delete("pods", name, "kube-system");
      else putPod(api, name, { annotations });
    });
  }

  // A plugin that is installed once, and removed for good.
  #pass(): void {
    const { machine, history } = this.#world;
    const number = this.#counts.passingPlugins;
    const kind = passing[number % passing.length]!;
    this.#counts[kind]++;
    const plugin = pluginOf[kind](machine, history, number);
    plugin.start();
    machine.init.after(PASSING_MS, () => plugin.uninstall());
  }
}

const pluginOf: Readonly<
  Record<(typeof passing)[number], (machine: Machine, history: History, number: number) => PluginActor>
> = {
  passingReporters: (machine, history, number) => new Reporter(machine, history, `passing-${number}`),
  passingEvictionPlugins: (machine, history, number) =>
    new EvictionActor(machine, history, `passing-${number}`, () => []),
  passingDrivers: (machine, history, number) =>
    new DriverActor(machine, history, `passing-${number}.example.com`, () => {}),
};
