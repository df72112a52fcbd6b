import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import { seededRandom } from "../../../packages/testing/src/runtime/seeded-random.ts";
import { Machine } from "../machine/machine.ts";
import { AgentHost, STATUS_ADDRESS } from "./agent-host.ts";
import { ApiOutages } from "./api-outages.ts";
import { ApiServer, NODE } from "./api-server.ts";
import { Budgets } from "./budgets.ts";
import { Collector } from "./collector.ts";
import { Consumer } from "./consumer.ts";
import { Devices } from "./devices.ts";
import { Disk } from "./disk.ts";
import { Drain } from "./drain.ts";
import { EvictionActor } from "./eviction-plugins.ts";
import { History } from "./history.ts";
import { Host } from "./host.ts";
import { InTree } from "./in-tree.ts";
import { SYSTEM_REPORTER } from "./in-tree-settings.ts";
import { KatalystAgent } from "./katalyst-agent.ts";
import { ContainerRuntime, drawRuntime, Kubelet, seedPods } from "./node.ts";
import { Operator } from "./operator.ts";
import { OtherWriters } from "./other-writers.ts";
import { CALM_MS, drawPlan, type Plan, type PlanChanges, SHORT_LOG, stalls } from "./plan.ts";
import type { PluginActor } from "./plugins.ts";
import { Policies } from "./policies.ts";
import { Reporter } from "./reporters.ts";
import { evictionSection, type Settings } from "./settings.ts";
import { clusterPools, SharedPools } from "./shared-pools.ts";
import { Storm } from "./storm.ts";

/** A node with an agent, everything that the agent meets there, and what really happened. */
export class World {
  readonly seed: number;
  readonly isQuick: boolean;
  readonly machine: Machine;
  readonly plan: Plan;
  readonly history: History;
  readonly api: ApiServer;
  readonly outages: ApiOutages;
  readonly runtime: ContainerRuntime;
  readonly kubelet: Kubelet;
  readonly agent: AgentHost;
  readonly disk: Disk;
  readonly operator: Operator;
  readonly host: Host;
  readonly inTree: InTree;
  readonly policies: Policies;
  readonly budgets: Budgets;
  readonly drain: Drain;
  readonly reporters: Reporter[];
  readonly evictionPlugins: EvictionActor[];
  readonly consumers: Consumer[];
  readonly devices: Devices;
  /** Undefined if no pool of the world is one beyond the node. */
  readonly pools: SharedPools | undefined;
  /** Undefined if the agent exports nothing. */
  readonly collector: Collector | undefined;
  readonly otherWriters: OtherWriters;
  readonly katalyst: KatalystAgent;
  /** Number of faults by name. */
  readonly faults: Record<string, number> = {};
  /** `archive.endpoint`, from the next configuration on. Empty: nothing is exported. */
  archiveEndpoint = "";
  #isCalm = false;

  constructor(seed: number, { isQuick = false, ...changes }: PlanChanges) {
    this.seed = seed;
    this.isQuick = isQuick;
    const root = mkdtempSync(join(sharedMemory(), "nk-sim-"));
    const machine = new Machine({ random: seededRandom(seed), root });
    this.machine = machine;
    const { plan, stopRandom } = drawPlan(machine, seed, isQuick);
    this.plan = { ...plan, ...changes, faults: { ...plan.faults, ...changes.faults } };
    if (this.plan.stopped) this.plan.settings = { ...this.plan.settings, ...this.plan.stopped.settings };
    this.history = new History(() => machine.scheduler.now);
    this.api = new ApiServer(machine, this.history, stalls(this.plan) ? QUICK_BOOKMARKS_MS : BOOKMARKS_MS);
    this.outages = new ApiOutages(machine, this.history, this.api);
    const runtimeName = drawRuntime(seededRandom(seed + RUNTIME));
    const stopFaults = this.plan.stopped && { faults: this.plan.faults, random: stopRandom };
    this.runtime = new ContainerRuntime(machine, this.history, runtimeName, stopFaults);
    const { reporters, evictionPlugins, consumers, mostReplicas, faults } = this.plan;
    const isHostWatched = Number.isFinite(faults.hostChanges);
    const names = (kind: string, count: number) => Array.from({ length: count }, (_, at) => `${kind}-${at}`);
    this.reporters = names("reporter", reporters).map((name) => new Reporter(machine, this.history, name));
    this.evictionPlugins = names("pressure", evictionPlugins).map(
      (name) =>
        new EvictionActor(machine, this.history, name, () => this.api.pods.named, seed % NAMES_ALL === 0),
    );
    this.consumers = names("consumer", consumers).map(
      (name) => new Consumer(machine, this.history, name, this.plan.hasShortLog ? LONG_AWAY_MS : AWAY_MS),
    );
    for (const plugin of this.evictionPlugins) plugin.hasCondition = machine.chance(0.5);
    this.devices = new Devices(machine, this.history, this, {
      drivers: this.plan.drivers,
      replicas: mostReplicas,
      hasShares: this.plan.hasShares,
      hasBinding: this.plan.hasBinding,
      rates: faults,
    });
    this.#drawPlugins();
    this.collector = this.plan.hasArchive ? new Collector(machine, this.history) : undefined;
    this.archiveEndpoint = this.collector?.endpoint ?? "";
    this.otherWriters = new OtherWriters(machine, this.api, this.history);
    this.katalyst = new KatalystAgent(machine, this.history, this.api);
    this.budgets = new Budgets(machine, this.history, this.api);
    this.drain = new Drain(machine, this.history, this.api);
    mkdirSync(join(root, "plugins"), { mode: 0o700 });
    mkdirSync(join(root, "host"));
    this.host = machine.init.run(() => new Host(machine, this.history, this.runtime, isHostWatched));
    this.inTree = new InTree(this.host);
    const { reclaimed } = this.host;
    this.kubelet = new Kubelet(machine, this.api, this.runtime, {
      mostReplicas,
      reclaimed,
      stopped: this.plan.stopped,
    });
    const hasPolicies = Number.isFinite(faults.memoryChanges);
    this.policies = machine.init.run(() => new Policies(machine, this.history, this.host, hasPolicies));
    this.operator = new Operator(
      machine,
      this.history,
      this.plan.settings,
      () => this.agent,
      this.plan.stopped !== undefined,
    );
    this.agent = new AgentHost(machine, this.history, this.operator, (settings) => this.#sections(settings));
    this.disk = new Disk(machine, this.history, this.agent);
    const { api, agent } = this;
    this.pools = this.plan.hasPools
      ? new SharedPools(machine, this.history, { api, agent, settings: this.plan.settings })
      : undefined;
  }

  // Draws nothing if none of them lies or is replaced.
  #drawPlugins(): void {
    const { lies, pluginReplacements, stubbornLiars } = this.plan.faults;
    for (const plugin of this.plugins) {
      if (Number.isFinite(lies)) plugin.isStubborn = this.machine.chance(stubbornLiars);
      if (Number.isFinite(pluginReplacements)) plugin.mayRoll();
    }
  }

  get plugins(): PluginActor[] {
    return [
      ...this.reporters,
      ...this.evictionPlugins,
      ...this.devices.drivers,
      ...(this.pools?.drivers ?? []),
    ];
  }

  get isCalm(): boolean {
    return this.#isCalm;
  }

  /** How long the agent keeps what a reporter that is away has published, and after its start what nobody reports. */
  get reporterGraceMs(): number {
    return this.plan.calmMs < CALM_MS ? SHORT_GRACE_MS : GRACE_MS;
  }

  /**
   * Returns the plugins that may have requested a pod in a period, in virtual milliseconds, of those that run in the
   * agent: nobody hears what they answer.
   */
  unheard(pod: { uid: string; name: string }, from: number, to: number): string[] {
    const { policies, inTree } = this;
    const ofPolicies = policies.mayAsk(pod.name, from, to) ? [policies.plugin] : [];
    return [...ofPolicies, ...inTree.mayAsk(pod, from, to)];
  }

  /**
   * Starts everything, lets it storm, and then lets it rest.
   * @param isOver called after each step; ends the life of the world if it returns true
   */
  async live(isOver: () => boolean): Promise<void> {
    const { machine, plan } = this;
    const { scheduler, init } = machine;
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
    this.collector?.start();
    init.run(() => this.agent.start());
    init.run(() => this.pools?.start());
    await scheduler.run(FIRST_MS, isOver);
    new Storm(this).begin();
    this.collector?.storm(seededRandom(this.seed + COLLECTOR));
    await scheduler.run(FIRST_MS + plan.stormMs, isOver);
    if (isOver()) return;
    this.#calm();
    await scheduler.run(FIRST_MS + plan.stormMs + plan.calmMs, isOver);
  }

  [Symbol.dispose](): void {
    this.machine.end();
    rmSync(this.machine.root, { recursive: true, force: true });
  }

  #calm(): void {
    const { network } = this.machine;
    this.#isCalm = true;
    this.history.note("world", "all is calm");
    network.weather = { localMs: () => 0.1, remoteMs: () => 1, breaks: () => undefined };
    this.outages.end();
    this.api.onWrite = undefined;
    this.api.onClaimRead = undefined;
    this.machine.init.run(() => this.agent.endOne());
    this.machine.init.run(() => this.disk.repair());
    this.machine.init.run(() => this.operator.correct());
    this.machine.init.run(() => this.policies.correct());
    this.machine.init.run(() => this.host.repair());
    this.runtime.process.thaw();
    this.runtime.eventFaults = {};
    this.runtime.stops?.settle();
    for (const plugin of this.plugins) plugin.settle();
    for (const consumer of this.consumers) consumer.settle();
    this.devices.binding?.settle();
    this.pools?.settle();
    this.collector?.settle();
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
    const pods = this.#podsThatComeBack();
    if (pods.length > 0) this.#delete(this.machine.pick(pods));
  }

  /** Deletes all pods that come back. */
  deletePods(): void {
    for (const pod of this.#podsThatComeBack()) this.#delete(pod);
  }

  #podsThatComeBack(): KubeObject[] {
    return this.api.store
      .list("pods")
      .filter(({ metadata }) => metadata.namespace === "default" && metadata.deletionTimestamp === undefined);
  }

  #delete({ metadata: { name = "", namespace } }: KubeObject): void {
    this.history.note("operator", `deletes ${name}`);
    this.api.process.run(() => this.api.store.delete("pods", name, namespace));
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
      rollingUpdate: this.plan.rollingUpdate,
      api: { socket: join(runDirectory, "api.sock") },
      // Compression would take real time.
      archive: { endpoint: this.archiveEndpoint, compression: "none" },
      lifecycle: this.plan.hasShortLog
        ? { logCapacity: SHORT_LOG, savedEvents: SHORT_LOG }
        : { logCapacity: 2_000, savedEvents: 1_000 },
      runtime: { endpoint: join(runDirectory, "cri.sock") },
      plugins: { directories: [join(root, "plugins")], endpointDirectories: [] },
      reporting: {
        inTreePlugins: this.host.isWatched ? [SYSTEM_REPORTER] : [],
        pluginGracePeriod: `${this.reporterGraceMs}ms`,
      },
      devices: { ...this.devices.settings, ...(this.plan.hasPools ? { clusterPools } : {}) },
      eviction: evictionSection(settings, this.policies.file, this.host.isWatched),
    };
  }
}

// Until everything has started.
const FIRST_MS = 2_000;
// Shorter than either calm: until it has ended, what an earlier agent published and no plugin reports is kept.
const GRACE_MS = 60_000;
const SHORT_GRACE_MS = 30_000;

const BOOKMARKS_MS = 60_000;
// So that watches have had one when they stall.
const QUICK_BOOKMARKS_MS = 3_000;

// How long consumers are away at most: by default, and in worlds with a short log.
const AWAY_MS = 8_000;
const LONG_AWAY_MS = 60_000;

// In one of so many worlds, eviction plugins name all pods that they are offered, however few they are asked for.
const NAMES_ALL = 7;
// Between the seeds of a world and of its runtime, which has chance of its own.
const RUNTIME = 6_000_011;
// The same of its collector.
const COLLECTOR = 15_000_017;

// State is written thousands of times: not to a disk, where there is another place.
function sharedMemory(): string {
  try {
    mkdirSync("/dev/shm", { recursive: true });
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}
