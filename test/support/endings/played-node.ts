import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Clock, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { agentFlags, type RunningAgent, type StatusReader, startAgent, statusReader } from "../agent.ts";
import { startCluster, type TestCluster } from "../cluster.ts";
import { podNamed, startEvictionPlugin, type TestEvictionPlugin } from "../eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../processes.ts";
import { type Ending, endings, OtherClients, type PlayedPod } from "./pod-endings.ts";
import { type Arrival, type Interception, RequestRecorder } from "./request-recorder.ts";
import { StatementReader } from "./statements.ts";
import { AGENT, truthOf } from "./truth.ts";

/** A pod of each ending, by the name of the ending. */
type Pods = ReadonlyMap<string, PlayedPod>;

/** A node with a pod for each ending, a plugin that requests them, and an agent behind a recorder of its requests. */
export class PlayedNode {
  readonly cluster: TestCluster;
  readonly recorder: RequestRecorder;
  readonly others: OtherClients;
  readonly pods: Pods;
  /** Runs on and is never requested. */
  readonly bystander: PlayedPod;
  readonly plugin: TestEvictionPlugin;
  readonly flags: Record<string, string>;
  /** The pods that the plugin requests now. */
  wanted: readonly PlayedPod[] = [];
  /** Wall milliseconds of the start of the running agent. */
  startedAt = 0;
  #agent: ScriptProcess | undefined;
  #agentHere: RunningAgent | undefined;
  #reader: StatusReader | undefined;
  #address = "";

  private constructor(
    cluster: TestCluster,
    recorder: RequestRecorder,
    plugin: TestEvictionPlugin,
    flags: Record<string, string>,
  ) {
    this.cluster = cluster;
    this.recorder = recorder;
    this.plugin = plugin;
    this.flags = flags;
    this.others = new OtherClients(cluster, recorder);
    const addPod = (name: string): PlayedPod => ({
      name,
      uid: cluster.addPod(name, { spec: { terminationGracePeriodSeconds: 60 } }),
    });
    this.bystander = addPod("bystander");
    this.pods = new Map(Object.keys(endings).map((name) => [name, addPod(name)]));
    plugin.evictPods = () => ({
      evictPods: this.wanted.map(({ name, uid }) => ({
        pod: podNamed(name, uid),
        reason: "the node is full",
        forceEvict: true,
      })),
    });
  }

  static async start(flags: Record<string, string> = {}): Promise<PlayedNode> {
    const cluster = await startCluster({ removePodsAfterGrace: false });
    const recorder = await RequestRecorder.start(cluster.server.url);
    const kubeconfig = join(cluster.directory, "recorded-kubeconfig");
    writeFileSync(kubeconfig, cluster.server.kubeconfig().replaceAll(cluster.server.url, recorder.url));
    const all: Record<string, string> = { ...agentFlags(cluster), kubeconfig, evictionBurst: "-1", ...flags };
    mkdirSync(all.pluginDirectories!, { recursive: true });
    const plugin = await startEvictionPlugin(all.pluginDirectories!, "asker");
    return new PlayedNode(cluster, recorder, plugin, all);
  }

  async stop(): Promise<void> {
    await this.killAgent();
    await this.#agentHere?.stop();
    await this.plugin.stop();
    await this.recorder.stop();
    await this.cluster.stop();
  }

  /** Starts the agent as a process, and waits until it serves. */
  async startAgent(flags: Record<string, string> = {}): Promise<void> {
    this.startedAt = Date.now();
    const started = startScript("packages/agent/src/main.ts", [
      "run",
      ...argumentsOf({ ...this.flags, ...flags }),
    ]);
    this.#agent = started;
    const address = /"address":"(127\.[^"]+)"[^\n]*"status server is listening"/;
    await until("the agent serves", () => address.test(started.output()), { explain: started.output });
    this.#use(address.exec(started.output())![1]!);
  }

  /** Starts the agent in this process, for what can't be done to another one. */
  async startAgentHere(clock: Clock = systemClock): Promise<void> {
    this.startedAt = clock.now();
    this.#agentHere = await startAgent(this.cluster, this.flags, undefined, clock);
    this.#use(this.#agentHere.address);
  }

  #use(address: string): void {
    this.#address = address;
    this.#reader = statusReader(address);
  }

  /** Kills it without waiting for its end, as from a handler. */
  killNow(): void {
    this.#agent?.kill("SIGKILL");
  }

  async killAgent(): Promise<void> {
    this.killNow();
    await this.#agent?.ended;
  }

  async stopAgent(): Promise<void> {
    this.#agent?.kill("SIGTERM");
    await this.#agent?.ended;
  }

  output(): string {
    return this.#agent?.output() ?? JSON.stringify(this.#agentHere?.logLines.slice(-50));
  }

  get reader(): StatusReader {
    return this.#reader!;
  }

  get statements(): StatementReader {
    return new StatementReader(this.#address, this.reader);
  }

  /** Intercepts requests of the agent of one kind about requested pods. */
  intercept(kind: Arrival["kind"], what: (arrival: Arrival) => Interception | Promise<Interception>): void {
    const names = new Set(this.pods.keys());
    this.recorder.intercept = (arrival) =>
      arrival.client === AGENT && arrival.kind === kind && names.has(arrival.pod ?? "")
        ? what(arrival)
        : "pass";
  }

  passAll(): void {
    this.recorder.intercept = () => "pass";
  }

  /** Plays the endings of these pods, by the names of the endings. */
  async strike(names: Iterable<string> = this.pods.keys()): Promise<void> {
    for (const name of names) {
      const pod = this.pods.get(name)!;
      const ending: Ending = endings[name]!;
      await ending.strike(this.others, pod);
      if (ending.isImmediate) await this.others.finish(pod);
    }
  }

  /** Ends terminating pods as the kubelet does, until each pod has ended and the agent has had rounds after that. */
  async settle(): Promise<void> {
    const pods = [...this.pods.values()];
    const explain = () => [pods.filter((pod) => truthOf(this.recorder, pod.uid) === "alive"), this.output()];
    await until(
      "all pods end",
      async () => {
        for (const pod of pods) await this.others.finish(pod);
        return pods.every((pod) => truthOf(this.recorder, pod.uid) !== "alive" && !this.isTerminating(pod));
      },
      { explain },
    );
    for (const pod of pods.filter((one) => this.others.find(one) === undefined)) {
      await until(`${pod.name} is recorded as deleted`, async () => {
        const { history } = await this.reader.api(`eviction/explain?pod=${pod.uid}`);
        return history?.leftAt != null;
      });
    }
    const uids = new Set(pods.map(({ uid }) => uid));
    await until(
      "no eviction is in progress",
      async () => {
        const evictions = await this.statements.evictions();
        return evictions.every(({ uid, outcome }) => outcome || !uids.has(uid));
      },
      { explain },
    );
    await this.untilRounds(3);
  }

  /** Waits until the state directory has the history of all pods: what the agent has only in memory ends with it. */
  async untilPodsKept(): Promise<void> {
    using database = new DatabaseSync(join(this.flags.stateDir!, "nodekeeper.db"), { readOnly: true });
    const kept = database.prepare("SELECT uid FROM node_pod");
    await until("the pods are in the state directory", () => kept.all().length > this.pods.size, {
      explain: () => this.output(),
    });
  }

  isTerminating(pod: PlayedPod): boolean {
    return this.others.find(pod)?.metadata.deletionTimestamp !== undefined;
  }

  /** Waits until so many further rounds have asked the plugin. */
  async untilRounds(count: number): Promise<void> {
    const { rounds } = this.plugin;
    await until("further rounds", () => this.plugin.rounds >= rounds + count, {
      explain: () => this.output(),
    });
  }
}
