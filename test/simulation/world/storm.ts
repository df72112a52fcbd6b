import type { Machine } from "../machine/machine.ts";
import type { AgentHost } from "./agent-host.ts";
import type { ApiOutages } from "./api-outages.ts";
import type { ApiServer } from "./api-server.ts";
import type { Budgets } from "./budgets.ts";
import type { Consumer } from "./consumer.ts";
import type { Devices } from "./devices.ts";
import type { Disk } from "./disk.ts";
import type { Drain } from "./drain.ts";
import { EvictionActor } from "./eviction-plugins.ts";
import { apiFaultsOf, type Counts, count, type TimedFault, weatherOf } from "./faults.ts";
import { type ApiWrite, type History, isEviction } from "./history.ts";
import type { Host } from "./host.ts";
import type { KatalystAgent } from "./katalyst-agent.ts";
import type { ContainerRuntime } from "./node.ts";
import type { Operator } from "./operator.ts";
import type { OtherWriters } from "./other-writers.ts";
import type { Plan } from "./plan.ts";
import type { PluginActor } from "./plugins.ts";
import type { Policies } from "./policies.ts";
import { Power } from "./power.ts";
import type { Reporter } from "./reporters.ts";
import type { SharedPools } from "./shared-pools.ts";

/** The parts of a world that a storm acts on. */
interface Parts {
  readonly machine: Machine;
  readonly plan: Plan;
  readonly history: History;
  readonly api: ApiServer;
  readonly outages: ApiOutages;
  readonly runtime: ContainerRuntime;
  readonly agent: AgentHost;
  readonly disk: Disk;
  readonly operator: Operator;
  readonly host: Host;
  readonly policies: Policies;
  readonly budgets: Budgets;
  readonly drain: Drain;
  readonly plugins: readonly PluginActor[];
  readonly reporters: readonly Reporter[];
  readonly evictionPlugins: readonly EvictionActor[];
  readonly consumers: readonly Consumer[];
  readonly devices: Devices;
  readonly pools: SharedPools | undefined;
  readonly otherWriters: OtherWriters;
  readonly katalyst: KatalystAgent;
  readonly faults: Counts;
  readonly isCalm: boolean;
  /** Deletes a pod that comes back. */
  deletePod(): void;
}

// About that of the agent's rounds.
const ROUND_MS = 3_000;
// How often the pressure changes in worlds in which the agent stops containers: they have few evictions otherwise.
const EAGER_MS = 4_000;

/** What goes wrong and what changes in a world, each as often as its plan says, until the world is calm. */
export class Storm {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Begins the storm. Chance is drawn in the order of the calls. */
  begin(): void {
    const { machine, history, plan, api, runtime, faults, plugins, otherWriters, katalyst } = this.#parts;
    history.note("world", "the storm begins");
    machine.network.weather = weatherOf(machine, plan.faults, faults, (method, url) =>
      history.lost.push({ at: machine.scheduler.now, method, url }),
    );
    api.faults = apiFaultsOf(machine, plan.faults, faults, () => otherWriters.write());
    api.onWrite = (write) => this.#meetWrite(write);
    runtime.eventFaults = plan.faults.runtimeEvents;
    for (const plugin of plugins) plugin.slowStarts = plan.faults.slowStarts;
    this.#overApiServer();
    this.#overAgent();
    this.#overCluster();
    this.#overPlugins();
    this.#overRuntime();
    this.#overMachine();
    this.#overPressure();
    this.#overDevices();
    this.#overBinding();
    this.#again(7_000, () => api.process.run(() => otherWriters.write()));
    this.#again(7_000, () => katalyst.write());
    this.#overPools();
  }

  #overApiServer(): void {
    const { machine, history, api, outages } = this.#parts;
    this.#often("cutWatches", () => {
      const isCompacted = machine.chance(0.5);
      history.note("fault", isCompacted ? "watches cut, history compacted" : "watches cut");
      api.process.run(() => {
        if (isCompacted) api.store.compact();
        api.server.cutWatches();
      });
    });
    this.#often("stalledWatches", () => {
      history.note("fault", "watches stalled");
      // The agent learns of it by the bookmarks that are missing, if there were any.
      api.stallWatches(2 * api.bookmarkIntervalMs);
    });
    this.#often("apiOutages", () => outages.begin());
  }

  #overAgent(): void {
    const { machine, agent, operator, policies } = this.#parts;
    this.#often("agentKills", () => agent.kill(machine.chance(0.7) ? machine.between(0, 200) : undefined));
    this.#often("agentStops", () => agent.stop());
    this.#often("edits", () => operator.edit());
    this.#often("memoryChanges", () => policies.change());
    if (policies.file) this.#often("policyEdits", () => policies.edit());
  }

  #overCluster(): void {
    const { machine, api, budgets, drain } = this.#parts;
    this.#often("budgetChanges", () => api.process.run(() => budgets.change()));
    this.#often("drains", () => void drain.run(machine.between(5_000, 30_000)));
  }

  #overPlugins(): void {
    const { machine, history, consumers } = this.#parts;
    const anyPlugin = () => machine.pick(this.#parts.plugins);
    this.#often("pluginKills", () => anyPlugin().kill());
    this.#often("pluginFreezes", () => {
      const { process, name } = anyPlugin();
      history.note("fault", `${name} frozen`);
      if (process) this.#freeze(process, 20_000);
    });
    this.#often("flaps", () => anyPlugin().flap());
    this.#often("slowRestarts", () => anyPlugin().restartSlowly());
    this.#often("lies", () => anyPlugin().lie());
    this.#often("pluginReplacements", () => this.#replacePlugin());
    this.#often("consumerKills", () => machine.pick(consumers).kill());
  }

  #overRuntime(): void {
    const { machine, history, runtime } = this.#parts;
    this.#often("runtimeFreezes", () => {
      history.note("fault", "containerd frozen");
      this.#freeze(runtime.process, 15_000);
      history.addRuntimeOutage(15_000);
    });
    this.#often("runtimeRestarts", () => {
      history.note("fault", "containerd restarted");
      const downMs = machine.between(0, 8_000);
      history.addRuntimeOutage(downMs);
      void runtime.restart(downMs);
    });
  }

  #overMachine(): void {
    const { machine, history, disk, host } = this.#parts;
    this.#often("wallSteps", () => {
      machine.wallOffset += machine.between(-3_600_000, 3_600_000);
      history.note("fault", `wall clock is ${machine.wallOffset} ms off`);
    });
    this.#often("fullDisks", () => disk.fill());
    this.#often("readOnlyDisks", () => disk.makeReadOnly());
    this.#often("secondAgents", () => this.#startSecondAgent());
    const power = new Power(this.#parts);
    this.#often("powerLosses", () => power.lose());
    this.#often("reboots", () => power.reboot());
    this.#often("hostChanges", () => host.change());
    this.#often("hostDamages", () => host.damage());
  }

  // What plugins report, and the pods.
  #overPressure(): void {
    const { machine, plan, runtime, reporters, evictionPlugins } = this.#parts;
    const { stops } = runtime;
    if (stops) this.#often("containerCrashes", () => stops.crash());
    this.#again(8_000, () => machine.pick(reporters).change());
    this.#again(stops ? EAGER_MS : 10_000, () => machine.pick(evictionPlugins).change());
    this.#again(15_000, () => machine.pick(this.#parts.plugins).turn());
    // So that a short log is soon full.
    this.#again(plan.hasShortLog ? 2_000 : 12_000, () => this.#parts.deletePod());
  }

  #overDevices(): void {
    const { machine, agent, devices } = this.#parts;
    this.#often("driverReplacements", () => devices.replaceDriver());
    this.#often("driverRemovals", () => devices.toggleDriver());
    this.#often("kubeletRestarts", () => devices.restartKubelet());
    this.#often("forcedDeletions", () => devices.forceDelete());
    this.#often("sliceDeletions", () => devices.deleteSlice());
    this.#often("meddling", () => devices.meddle());
    this.#often("cdiRemovals", () => {
      // A claim that is recorded nowhere else is lost with its file (docs/operating.md).
      if (agent.process && machine.readOnlyDirectory === undefined) devices.removeCdiFile();
    });
    this.#again(6_000, () => devices.change());
  }

  #overBinding(): void {
    const { machine, plan, faults, api, agent, devices } = this.#parts;
    const { binding } = devices;
    if (!binding) return;
    this.#again(3_000, () => void binding.checker.write());
    const { reallocations, killsAtPreparations } = plan.faults;
    if (killsAtPreparations > 0)
      binding.driver.meetPreparation = () => {
        if (!machine.chance(killsAtPreparations)) return false;
        count(faults, "killsAtPreparations");
        machine.init.run(() => agent.kill());
        return true;
      };
    if (reallocations > 0)
      api.onClaimRead = (name) => {
        if (!machine.chance(reallocations) || !binding.scheduler.reallocate(name)) return;
        count(faults, "reallocations");
      };
  }

  #overPools(): void {
    const { pools } = this.#parts;
    if (!pools) return;
    this.#often("poolAgentKills", () => pools.killAgent());
    this.#often("poolAgentStops", () => pools.stopAgent());
    this.#often("poolDriverRemovals", () => pools.toggleDriver());
    this.#often("leaseMeddling", () => pools.meddleWithLease());
    this.#often("leaseRefusals", () => pools.refuseLeases());
    this.#often("partitions", () => pools.cutOff());
    this.#often("poolMeddling", () => pools.meddleWithSlices());
    this.#again(6_000, () => pools.change());
  }

  #freeze(process: { freeze(): void; thaw(): void }, mostMs: number): void {
    const { machine } = this.#parts;
    process.freeze();
    machine.scheduler.after(machine.between(100, mostMs), () => process.thaw());
  }

  // An eviction plugin is replaced while the round waits for another one.
  #replacePlugin(): void {
    const { machine, reporters, evictionPlugins } = this.#parts;
    const plugin = machine.pick([...reporters, ...evictionPlugins]);
    const others = evictionPlugins.filter((other) => other !== plugin);
    if (!(plugin instanceof EvictionActor) || others.length === 0) {
      plugin.replace();
      return;
    }
    machine.pick(others).manner = "slow";
    plugin.replaceAtAnswer();
  }

  // Two agents do not detect each other while the lock can't be written (docs/operating.md).
  #startSecondAgent(): void {
    const { machine, agent } = this.#parts;
    if (machine.readOnlyDirectory !== undefined) return;
    agent.startSecond();
    machine.scheduler.after(machine.between(500, 20_000), () => machine.init.run(() => agent.endOne()));
  }

  // What happens just when a write of the agent has been done, and before it knows.
  #meetWrite(write: ApiWrite): void {
    const { machine, plan, faults, agent, pools, reporters } = this.#parts;
    const { killsAtEvictions, killsAtWrites, killsAtPoolWrites, changesAtWrites } = plan.faults;
    if (pools && isPoolWrite(write) && machine.chance(killsAtPoolWrites)) {
      count(faults, "killsAtPoolWrites");
      machine.init.run(() => pools.meetWrite(write));
      return;
    }
    if (this.#isEndOfEviction(write) && machine.chance(killsAtEvictions)) {
      count(faults, "killsAtEnds");
      // Before its next round, or in it.
      machine.scheduler.after(machine.between(0, ROUND_MS), () => {
        if (!this.#parts.isCalm) machine.init.run(() => agent.kill());
      });
      return;
    }
    if (write.client !== "nodekeeper") return;
    if (machine.chance(isEviction(write) ? killsAtEvictions : killsAtWrites)) {
      count(faults, "killsAtWrites");
      machine.init.run(() => agent.kill());
    } else if (machine.chance(changesAtWrites)) {
      count(faults, "changesAtWrites");
      machine.init.run(() => machine.pick(reporters).change());
    }
  }

  #isEndOfEviction({ client, method, podUid }: ApiWrite): boolean {
    if (client !== "other" || method !== "DELETE" || podUid === undefined) return false;
    return this.#parts.history.evictions.some((eviction) => eviction.podUid === podUid);
  }

  /** Does a fault as often as the plan says, and counts it. */
  #often(name: TimedFault, act: () => void): void {
    const { plan, faults } = this.#parts;
    this.#again(plan.faults[name], () => {
      count(faults, name);
      act();
    });
  }

  /** Does something again and again until the storm is over. */
  #again(meanMs: number, act: () => void): void {
    if (!Number.isFinite(meanMs)) return;
    const { machine } = this.#parts;
    const next = () => {
      const wait = -Math.log(1 - machine.random()) * meanMs;
      machine.scheduler.after(Math.max(wait, 100), () => {
        if (this.#parts.isCalm) return;
        machine.init.run(act);
        next();
      });
    };
    next();
  }
}

/** Returns whether an agent has written ResourceSlices or Leases. */
function isPoolWrite({ client, path, isDryRun }: ApiWrite): boolean {
  return client !== "other" && !isDryRun && /\/(leases|resourceslices)/.test(path);
}
