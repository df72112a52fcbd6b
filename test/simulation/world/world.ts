import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "../../../packages/testing/src/runtime/seeded-random.ts";
import { fillDisk } from "../machine/edges/sqlite.ts";
import { Machine } from "../machine/machine.ts";
import { AgentHost, STATUS_ADDRESS } from "./agent-host.ts";
import { ApiServer, NODE } from "./api-server.ts";
import { Budgets } from "./budgets.ts";
import { Consumer } from "./consumer.ts";
import { Devices } from "./devices.ts";
import { Drain } from "./drain.ts";
import {
  apiFaultsOf,
  apiOutageOf,
  count,
  drawFaults,
  drawPowerFaults,
  type FaultRates,
  type TimedFault,
  weatherOf,
} from "./faults.ts";
import { type ApiWrite, History, isEviction } from "./history.ts";
import { ContainerRuntime, Kubelet, seedPods } from "./node.ts";
import { Operator } from "./operator.ts";
import { OtherWriters } from "./other-writers.ts";
import { EvictionActor, type PluginActor, Reporter } from "./plugins.ts";
import { Policies } from "./policies.ts";
import { Power } from "./power.ts";
import { drawSettings, evictionSection, type Settings } from "./settings.ts";

/** What a world is made of, drawn from its seed. */
export interface Plan {
  stormMs: number;
  calmMs: number;
  /** Most pods of a workload. */
  mostReplicas: number;
  consumers: number;
  faults: FaultRates;
  reporters: number;
  evictionPlugins: number;
  drivers: number;
  /** With which the agent is started first. */
  settings: Settings;
}

/** What is different from the plan that is drawn from a seed. */
export type PlanChanges = Partial<Omit<Plan, "faults">> & { faults?: Partial<FaultRates> };

/** A node with an agent, everything that the agent meets there, and what really happened. */
export class World {
  readonly seed: number;
  readonly machine: Machine;
  readonly plan: Plan;
  readonly history: History;
  readonly api: ApiServer;
  readonly runtime: ContainerRuntime;
  readonly kubelet: Kubelet;
  readonly agent: AgentHost;
  readonly operator: Operator;
  readonly policies: Policies;
  readonly budgets: Budgets;
  readonly drain: Drain;
  readonly reporters: Reporter[];
  readonly evictionPlugins: EvictionActor[];
  readonly consumers: Consumer[];
  readonly devices: Devices;
  readonly otherWriters: OtherWriters;
  /** Number of faults by name. */
  readonly faults: Record<string, number> = {};
  #isCalm = false;

  constructor(seed: number, changes: PlanChanges) {
    this.seed = seed;
    const root = mkdtempSync(join(sharedMemory(), "nk-sim-"));
    const machine = new Machine({ random: seededRandom(seed), root });
    this.machine = machine;
    const drawn = draw(machine, drawPowerFaults(seededRandom(seed + POWER)));
    this.plan = { ...drawn, ...changes, faults: { ...drawn.faults, ...changes.faults } };
    this.history = new History(() => machine.scheduler.now);
    this.api = new ApiServer(machine, this.history, stalls(this.plan) ? QUICK_BOOKMARKS_MS : BOOKMARKS_MS);
    this.runtime = new ContainerRuntime(machine, this.history);
    this.kubelet = new Kubelet(machine, this.api, this.runtime, this.plan.mostReplicas);
    const { reporters, evictionPlugins, consumers } = this.plan;
    const names = (kind: string, count: number) => Array.from({ length: count }, (_, at) => `${kind}-${at}`);
    this.reporters = names("reporter", reporters).map((name) => new Reporter(machine, this.history, name));
    this.evictionPlugins = names("pressure", evictionPlugins).map(
      (name) => new EvictionActor(machine, this.history, name),
    );
    this.consumers = names("consumer", consumers).map((name) => new Consumer(machine, this.history, name));
    for (const plugin of this.evictionPlugins) plugin.hasCondition = machine.chance(0.5);
    this.devices = new Devices(machine, this.history, this, this.plan.drivers);
    this.otherWriters = new OtherWriters(machine, this.api, this.history);
    this.budgets = new Budgets(machine, this.history, this.api);
    this.drain = new Drain(machine, this.history, this.api);
    mkdirSync(join(root, "plugins"), { mode: 0o700 });
    mkdirSync(join(root, "host"));
    const hasPolicies = Number.isFinite(this.plan.faults.memoryChanges);
    this.policies = machine.init.run(() => new Policies(machine, this.history, hasPolicies));
    this.operator = new Operator(machine, this.history, this.plan.settings, () => this.agent);
    this.agent = new AgentHost(machine, this.history, this.operator, (settings) => this.#sections(settings));
  }

  get plugins(): PluginActor[] {
    return [...this.reporters, ...this.evictionPlugins, ...this.devices.drivers];
  }

  get isCalm(): boolean {
    return this.#isCalm;
  }

  /**
   * Starts everything, lets it storm, and then lets it rest.
   * @param isOver called after each step; ends the life of the world if it returns true
   */
  async live(isOver: () => boolean): Promise<void> {
    const { machine, plan } = this;
    const { scheduler, init, network } = machine;
    this.api.process.run(() => void this.api.start());
    await scheduler.run(20);
    this.api.process.run(() => seedPods(this.api));
    void this.runtime.start();
    await scheduler.run(40);
    init.run(() => void this.kubelet.start());
    init.run(() => this.devices.start());
    init.run(() => this.#control());
    for (const plugin of this.plugins) init.run(() => plugin.start());
    for (const consumer of this.consumers) consumer.start();
    init.run(() => this.agent.start());
    await scheduler.run(FIRST_MS, isOver);
    this.history.note("world", "the storm begins");
    network.weather = weatherOf(machine, plan.faults, this.faults, (method, url) =>
      this.history.lost.push({ at: scheduler.now, method, url }),
    );
    this.api.faults = apiFaultsOf(machine, plan.faults, this.faults);
    this.runtime.eventFaults = plan.faults.runtimeEvents;
    this.#storm();
    await scheduler.run(FIRST_MS + plan.stormMs, isOver);
    if (isOver()) return;
    this.#calm();
    await scheduler.run(FIRST_MS + plan.stormMs + plan.calmMs, isOver);
  }

  [Symbol.dispose](): void {
    this.machine.end();
    rmSync(this.machine.root, { recursive: true, force: true });
  }

  #storm(): void {
    const { machine, history } = this;
    const frozen = (what: { freeze(): void; thaw(): void }, most: number) => {
      what.freeze();
      machine.scheduler.after(machine.between(100, most), () => what.thaw());
    };
    this.#often("cutWatches", () => {
      const isCompacted = machine.chance(0.5);
      history.note("fault", isCompacted ? "watches cut, history compacted" : "watches cut");
      this.api.process.run(() => {
        if (isCompacted) this.api.store.compact();
        this.api.server.cutWatches();
      });
    });
    this.#often("stalledWatches", () => {
      history.note("fault", "watches stalled");
      // The agent learns of it by the bookmarks that are missing, if there were any.
      this.api.stallWatches(2 * QUICK_BOOKMARKS_MS);
    });
    this.#often("apiOutages", () => {
      const { api } = this;
      const usual = api.faults;
      const outage = apiOutageOf(machine);
      history.note("fault", "API server refuses all requests");
      api.faults = outage;
      machine.scheduler.after(machine.between(500, 20_000), () => {
        if (api.faults === outage) api.faults = usual;
      });
    });
    this.#often("agentKills", () =>
      this.agent.kill(machine.chance(0.7) ? machine.between(0, 200) : undefined),
    );
    this.#often("agentStops", () => this.agent.stop());
    this.#often("edits", () => this.operator.edit());
    this.#often("memoryChanges", () => this.policies.change());
    if (this.policies.file) this.#often("policyEdits", () => this.policies.edit());
    this.#often("budgetChanges", () => this.api.process.run(() => this.budgets.change()));
    this.#often("drains", () => void this.drain.run(machine.between(5_000, 30_000)));
    this.#often("pluginKills", () => machine.pick(this.plugins).kill());
    this.#often("pluginFreezes", () => {
      const { process, name } = machine.pick(this.plugins);
      history.note("fault", `${name} frozen`);
      if (process) frozen(process, 20_000);
    });
    this.#often("consumerKills", () => machine.pick(this.consumers).kill());
    this.#often("runtimeFreezes", () => {
      history.note("fault", "containerd frozen");
      frozen(this.runtime.process, 15_000);
    });
    this.#often("runtimeRestarts", () => {
      history.note("fault", "containerd restarted");
      void this.runtime.restart(machine.between(0, 8_000));
    });
    this.#often("wallSteps", () => {
      machine.wallOffset += machine.between(-3_600_000, 3_600_000);
      history.note("fault", `wall clock is ${machine.wallOffset} ms off`);
    });
    this.#often("fullDisks", () => {
      history.note("fault", "disk full");
      fillDisk(machine, true);
      machine.scheduler.after(machine.between(1_000, 20_000), () => this.#makeSpace());
    });
    const power = new Power(this);
    this.#often("powerLosses", () => power.lose());
    this.#often("reboots", () => power.reboot());
    this.api.onWrite = (write) => this.#meetWrite(write);
    for (const plugin of this.plugins) plugin.slowStarts = this.plan.faults.slowStarts;
    this.#again(8_000, () => machine.pick(this.reporters).change());
    this.#again(10_000, () => machine.pick(this.evictionPlugins).change());
    this.#again(15_000, () => machine.pick(this.plugins).turn());
    this.#again(12_000, () => this.deletePod());
    const { devices } = this;
    this.#often("driverReplacements", () => devices.replaceDriver());
    this.#often("driverRemovals", () => devices.toggleDriver());
    this.#often("kubeletRestarts", () => devices.restartKubelet());
    this.#often("forcedDeletions", () => devices.forceDelete());
    this.#often("sliceDeletions", () => devices.deleteSlice());
    this.#often("meddling", () => devices.meddle());
    this.#often("cdiRemovals", () => devices.removeCdiFile());
    this.#again(6_000, () => devices.change());
    this.#again(7_000, () => this.api.process.run(() => this.otherWriters.write()));
  }

  #calm(): void {
    const { network } = this.machine;
    this.#isCalm = true;
    this.history.note("world", "all is calm");
    network.weather = { localMs: () => 0.1, remoteMs: () => 1, breaks: () => undefined };
    this.api.faults = undefined;
    this.api.onWrite = undefined;
    this.#makeSpace();
    this.machine.init.run(() => this.operator.correct());
    this.machine.init.run(() => this.policies.correct());
    this.runtime.process.thaw();
    this.runtime.eventFaults = {};
    for (const plugin of this.plugins) plugin.settle();
  }

  // What happens just when a write of the agent has been done, and before it knows.
  #meetWrite(write: ApiWrite): void {
    const { machine, faults, agent } = this;
    const { killsAtEvictions, killsAtWrites, changesAtWrites } = this.plan.faults;
    if (write.client !== "nodekeeper") return;
    if (machine.chance(isEviction(write) ? killsAtEvictions : killsAtWrites)) {
      count(faults, "killsAtWrites");
      machine.init.run(() => agent.kill());
    } else if (machine.chance(changesAtWrites)) {
      count(faults, "changesAtWrites");
      machine.init.run(() => machine.pick(this.reporters).change());
    }
  }

  #makeSpace(): void {
    if (!this.machine.isDiskFull) return;
    this.history.note("operator", "makes space on the disk");
    fillDisk(this.machine, false);
  }

  /** Does a fault as often as the plan says, and counts it. */
  #often(name: TimedFault, act: () => void): void {
    this.#again(this.plan.faults[name], () => {
      this.faults[name] = (this.faults[name] ?? 0) + 1;
      act();
    });
  }

  /** Does something again and again until the storm is over. */
  #again(meanMs: number, act: () => void): void {
    if (!Number.isFinite(meanMs)) return;
    const { machine } = this;
    const next = () => {
      const wait = -Math.log(1 - machine.random()) * meanMs;
      machine.scheduler.after(Math.max(wait, 100), () => {
        if (this.#isCalm) return;
        machine.init.run(act);
        next();
      });
    };
    next();
  }

  /** Runs the disruption controller, if there are budgets at all. */
  #control(): void {
    if (!Number.isFinite(this.plan.faults.budgetChanges)) return;
    const { machine, api, budgets } = this;
    machine.init.after(machine.between(50, 1_500), () => {
      api.process.run(() => budgets.control());
      this.#control();
    });
  }

  /** Deletes one of the pods that come back. */
  deletePod(): void {
    const pods = this.api.store
      .list("pods")
      .filter(({ metadata }) => metadata.namespace === "default" && metadata.deletionTimestamp === undefined);
    if (pods.length === 0) return;
    const { name, namespace } = this.machine.pick(pods).metadata;
    this.history.note("operator", `deletes ${name}`);
    this.api.process.run(() => this.api.store.delete("pods", name!, namespace));
  }

  #sections(settings: Settings): Record<string, unknown> {
    const { root, runDirectory } = this.machine;
    return {
      nodeName: NODE,
      stateDir: join(root, "state"),
      hostRoot: join(root, "host"),
      log: { level: "info" },
      kube: { kubeconfig: this.api.kubeconfig },
      server: { address: STATUS_ADDRESS },
      api: { socket: join(runDirectory, "api.sock") },
      lifecycle: { logCapacity: 2_000, savedEvents: 1_000 },
      runtime: { endpoint: join(runDirectory, "cri.sock") },
      plugins: { directories: [join(root, "plugins")], endpointDirectories: [] },
      // Shorter than the calm: until it has ended, what an earlier agent published and no plugin reports is kept.
      reporting: { inTreePlugins: [], pluginGracePeriod: "60s" },
      devices: this.devices.settings,
      eviction: evictionSection(settings, this.policies.file),
    };
  }
}

// Until everything has started.
const FIRST_MS = 2_000;
// Long enough for all that is promised to come true after a storm.
const CALM_MS = 70_000;

// A write whose response was lost is repaired after a minute, when it can't arrive any more. If it arrives at once, within
// the calm.
const LATE_WRITE_MS = 30_000;
const SOON_MS = 1_000;

const BOOKMARKS_MS = 60_000;
// So that watches have had one when they stall.
const QUICK_BOOKMARKS_MS = 3_000;
// An agent gives a watch up after 180 s without a bookmark, and opens it again.
const STALL_MS = 190_000;

function stalls({ faults }: Pick<Plan, "faults">): boolean {
  return Number.isFinite(faults.stalledWatches);
}

// Share of the worlds with few of each kind and a short storm. Most defects need no more, and such a world costs a third.
const SMALL = 0.75;

// Between the seeds of a world and of its power.
const POWER = 1_000_003;

function draw(machine: Machine, power: ReturnType<typeof drawPowerFaults>): Plan {
  const isSmall = machine.chance(SMALL);
  const most = isSmall ? 2 : 4;
  const stormMs = machine.between(10, isSmall ? 40 : 75) * 1_000;
  const faults = { ...drawFaults(machine), ...power };
  const isLate = faults.slow > 0 && faults.slowestMs > SOON_MS;
  return {
    stormMs,
    calmMs: CALM_MS + (isLate ? LATE_WRITE_MS : 0) + (stalls({ faults }) ? STALL_MS : 0),
    mostReplicas: machine.between(1, most),
    consumers: machine.between(1, 2),
    faults,
    reporters: machine.between(1, most - 1),
    evictionPlugins: machine.between(1, most - 1),
    drivers: machine.between(0, isSmall ? 1 : 2),
    settings: drawSettings(machine),
  };
}

// State is written thousands of times: not to a disk, where there is another place.
function sharedMemory(): string {
  try {
    mkdirSync("/dev/shm", { recursive: true });
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}
