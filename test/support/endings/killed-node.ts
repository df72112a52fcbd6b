import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { until } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { agentFlags, type StatusReader, statusReader } from "../agent.ts";
import { startCluster, type TestCluster } from "../cluster.ts";
import { hardPressure, podNamed, startEvictionPlugin, type TestEvictionPlugin } from "../eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../processes.ts";
import { falsehoods } from "./claims.ts";
import { endings, OtherClients, type PlayedPod } from "./pod-endings.ts";
import { type Arrival, type Interception, RequestRecorder } from "./request-recorder.ts";
import { StatementReader } from "./statements.ts";
import { AGENT, acceptedEvictions, truthOf } from "./truth.ts";

const CANDIDATES = 6;
const MOST_STEPS = 24;
// Longer than the agent waits for an answer.
const LATE_MS = 2_000;
const CALL_TIMEOUT = "1s";

/** A number from 0 to below the bound. */
type Chance = (bound: number) => number;

/** What came of the kills of one node. */
export interface KillReport {
  kills: number;
  evictions: number;
  decided: number;
  unknown: number;
  fallbacks: number;
  wrong: string[];
}

/**
 * A node whose agent is killed at random steps, while plugins are late, fail and lie, the API server fails and loses
 * responses, and other clients end pods. A step is a call of a plugin or a request of the agent.
 */
export class KilledNode {
  readonly #cluster: TestCluster;
  readonly #recorder: RequestRecorder;
  readonly #others: OtherClients;
  readonly #flags: Record<string, string>;
  readonly #chance: Chance;
  readonly #plugins: TestEvictionPlugin[] = [];
  /** All pods that ever were candidates. */
  readonly #pods: PlayedPod[] = [];
  /** UIDs that a plugin named in an answer that was not late. */
  readonly #named = new Set<string>();
  /** Of each life: the index of the first request in it. */
  readonly #lives: number[] = [];
  readonly #output: string[] = [];
  // The bundle starts in half the CPU time.
  readonly #script = process.env.EVICTION_KILLS_AGENT ?? "packages/agent/src/main.ts";
  #agent: ScriptProcess | undefined;
  #left = 0;
  #isCalm = false;

  private constructor(
    cluster: TestCluster,
    recorder: RequestRecorder,
    flags: Record<string, string>,
    random: () => number,
  ) {
    this.#cluster = cluster;
    this.#recorder = recorder;
    this.#flags = flags;
    this.#others = new OtherClients(cluster, recorder);
    this.#chance = (bound) => Math.floor(random() * bound);
    recorder.intercept = (arrival) => this.#intercept(arrival);
  }

  static async start(random: () => number): Promise<KilledNode> {
    const cluster = await startCluster();
    const recorder = await RequestRecorder.start(cluster.server.url);
    const kubeconfig = join(cluster.directory, "recorded-kubeconfig");
    writeFileSync(kubeconfig, cluster.server.kubeconfig().replaceAll(cluster.server.url, recorder.url));
    const own = { kubeconfig, evictionCallTimeout: CALL_TIMEOUT };
    const flags: Record<string, string> = { ...agentFlags(cluster), ...own };
    mkdirSync(flags.pluginDirectories!, { recursive: true });
    const node = new KilledNode(cluster, recorder, flags, random);
    await node.#startPlugins();
    cluster.addPod("bystander");
    cluster.addPod("critical", { spec: { priority: 2_000_000_000 } });
    cluster.addPod("elsewhere", { spec: { nodeName: "worker-2" } });
    for (let count = 0; count < CANDIDATES; count++) node.#addPod();
    return node;
  }

  async stop(): Promise<void> {
    await this.#kill();
    for (const plugin of this.#plugins) await plugin.stop();
    await this.#recorder.stop();
    await this.#cluster.stop();
  }

  /** Kills the agent so many times, then lets all come to rest, and judges what is recorded. */
  async run(kills: number): Promise<KillReport> {
    for (let kill = 0; kill < kills; kill++) {
      this.#left = 1 + this.#chance(MOST_STEPS);
      this.#start();
      await until("the kill", () => this.#left <= 0, { explain: () => this.#agent?.output() });
      await this.#kill();
      await this.#endOne();
      while (this.#alive().length < CANDIDATES) this.#addPod();
    }
    this.#isCalm = true;
    return await this.#judge(kills);
  }

  async #startPlugins(): Promise<void> {
    const { pluginDirectories } = this.#flags;
    const start = async (name: string) => {
      const plugin = await startEvictionPlugin(pluginDirectories!, name);
      this.#plugins.push(plugin);
      return plugin;
    };
    const flapping = (plugin: TestEvictionPlugin, scope: string) =>
      Object.defineProperty(plugin, "threshold", {
        get: () => (this.#isCalm || this.#chance(3) === 0 ? {} : { ...hardPressure, evictionScope: scope }),
      });

    const naming = await start("naming");
    naming.evictPods = () => {
      this.#step();
      if (this.#isCalm) return {};
      return { evictPods: this.#some(2).map((pod) => this.#request(pod)) };
    };

    // Names pods in time, or late, or fails.
    const slow = await start("slow");
    flapping(slow, "disk");
    slow.top = async () => {
      this.#step();
      const [pod] = this.#alive();
      if (!pod || this.#isCalm) return {};
      const how = this.#chance(3);
      if (how === 0) throw new ServerError(Status.INTERNAL, "the ranking failed");
      if (how === 1) await after(LATE_MS);
      else this.#named.add(pod.uid);
      return { targetPods: [podNamed(pod.name, pod.uid)] };
    };

    // Names what it may not: pods that never were, that are protected, of another node, of an earlier namesake.
    const lying = await start("lying");
    flapping(lying, "memory");
    const lies = () => [
      podNamed("nobody", randomUUID()),
      podNamed("critical", this.#uidOf("critical")),
      podNamed("elsewhere", this.#uidOf("elsewhere")),
      podNamed("bystander", randomUUID()),
    ];
    lying.top = () => {
      this.#step();
      return this.#isCalm ? {} : { targetPods: [lies()[this.#chance(4)]!] };
    };
    lying.evictPods = () => {
      this.#step();
      if (this.#isCalm || this.#chance(2) === 0) return {};
      return { evictPods: lies().map((pod) => ({ pod, reason: "a lie", forceEvict: true })) };
    };
  }

  #request(pod: PlayedPod) {
    this.#named.add(pod.uid);
    return {
      pod: podNamed(pod.name, pod.uid),
      reason: "the node is full",
      forceEvict: this.#chance(2) === 0,
    };
  }

  // The API server fails, is throttled, or loses requests and responses.
  #intercept({ client, kind }: Arrival): Interception {
    if (client !== AGENT) return "pass";
    this.#step();
    if (this.#isCalm || (kind !== "evict" && kind !== "read")) return "pass";
    if (this.#left <= 0) return this.#chance(2) === 0 ? "holdResponse" : "hold";
    const faults: Interception[] = [{ status: 503 }, { status: 429, retryAfter: 1 }, "drop", "loseResponse"];
    return faults[this.#chance(12)] ?? "pass";
  }

  #step(): void {
    if (this.#isCalm || this.#left <= 0) return;
    if (--this.#left <= 0) this.#agent?.kill("SIGKILL");
  }

  #start(): void {
    this.#lives.push(this.#recorder.sent.length);
    this.#agent = startScript(this.#script, ["run", ...argumentsOf(this.#flags)]);
  }

  async #kill(): Promise<void> {
    this.#agent?.kill("SIGKILL");
    await this.#agent?.ended;
    if (this.#agent) this.#output.push(this.#agent.output());
    this.#agent = undefined;
  }

  // Another client ends a pod, one that is terminating already among them.
  async #endOne(): Promise<void> {
    const pods = this.#alive();
    const pod = pods[this.#chance(pods.length + 2)];
    const names = Object.keys(endings).filter((name) => name !== "evicted");
    if (pod) await endings[names[this.#chance(names.length)]!]!.strike(this.#others, pod);
  }

  #addPod(): void {
    const name = `pod-${this.#pods.length}`;
    this.#pods.push({ name, uid: this.#cluster.addPod(name) });
  }

  #alive(): PlayedPod[] {
    return this.#pods.filter((pod) => this.#isThere(pod) && truthOf(this.#recorder, pod.uid) === "alive");
  }

  #isThere(pod: PlayedPod): boolean {
    return this.#others.find(pod) !== undefined;
  }

  #some(count: number): PlayedPod[] {
    const pods = this.#alive();
    return Array.from({ length: count }, () => pods[this.#chance(pods.length)]!).filter(Boolean);
  }

  #uidOf(name: string): string {
    return this.#cluster.server.store.get("pods", name, "default")!.metadata.uid!;
  }

  async #judge(kills: number): Promise<KillReport> {
    this.#start();
    const agent = this.#agent!;
    const address = /"address":"(127\.[^"]+)"[^\n]*"status server is listening"/;
    await until("the agent serves", () => address.test(agent.output()), { explain: agent.output });
    const where = address.exec(agent.output())![1]!;
    const reader = statusReader(where);
    const statements = new StatementReader(where, reader);
    await this.#untilAtRest(reader);

    const evictions = await statements.evictions();
    const decided = new Set<string>(evictions.filter(({ dryRun }) => !dryRun).map(({ uid }) => uid));
    const accepted = acceptedEvictions(this.#recorder);
    const wrong: string[] = [];
    const fail = (uid: string, what: string) =>
      wrong.push(`${this.#pods.find((pod) => pod.uid === uid)?.name ?? uid}: ${what}`);
    // One that a restart interrupted may be decided again: its last decision has the outcome.
    const last = new Map(evictions.map((eviction) => [eviction.uid, eviction]));
    for (const { uid, outcome, at } of last.values())
      if (outcome === null) fail(uid, `decided at ${new Date(at).toISOString()}, no outcome is recorded`);
    for (const uid of new Set([...accepted, ...this.#selectedInLog()]))
      if (!decided.has(uid)) fail(uid, "selected or evicted, and no eviction is recorded");
    for (const [at, uid] of accepted.entries()) if (accepted.indexOf(uid) < at) fail(uid, "evicted twice");

    let [unknown, fallbacks] = [0, 0];
    const all = await statements.about(this.#pods);
    for (const [at, pod] of this.#pods.entries()) {
      const said = all[at]!;
      const truth = truthOf(this.#recorder, pod.uid);
      // Records begin with the first round that an agent completed; what it evicted is in them.
      const lost = { response: this.#isResponseLost(pod), records: truth !== "ours" };
      for (const what of falsehoods(said, truth, lost)) fail(pod.uid, `${what}. It says: ${said.verdict}`);
      if (said.rows.at(-1)?.result === "unknown") unknown++;
      if (!accepted.includes(pod.uid) || this.#named.has(pod.uid)) continue;
      fallbacks++;
      // Only what a plugin answered may lead to a choice by the ranking, and that is stated.
      if (
        !/lying/.test(said.verdict) ||
        !/named no pod that can be evicted|lowest-ranked|ranking/i.test(said.page)
      )
        fail(pod.uid, `evicted, and no plugin named it. It says: ${said.page}`);
    }
    return { kills, evictions: accepted.length, decided: decided.size, unknown, fallbacks, wrong };
  }

  // Nothing is requested any more, deleted pods are gone and recorded, and rounds have followed.
  async #untilAtRest(reader: StatusReader): Promise<void> {
    const explain = () => this.#agent?.output();
    const isTerminating = (pod: PlayedPod) =>
      this.#others.find(pod)?.metadata.deletionTimestamp !== undefined;
    await until("no pod terminates", () => !this.#pods.some(isTerminating), { explain });
    const asked = this.#plugins[0]!;
    await until("registration", () => asked.registered === true, { explain });
    const { rounds } = asked;
    await until("rounds", () => asked.rounds >= rounds + 3, { explain });
    for (const pod of this.#pods.filter((one) => !this.#isThere(one))) {
      const said = async () => await reader.api(`eviction/explain?pod=${pod.uid}`);
      // One that was deleted before an agent could record that it was there has no history.
      const isRecorded = async () => {
        const { history, error } = await said();
        return error !== undefined || history === null || history?.leftAt != null;
      };
      await until(`${pod.name} is recorded as deleted`, isRecorded, { explain: said });
    }
  }

  // Whether the agent may not know what came of a request: no response reached it, or it was killed after it.
  #isResponseLost({ name }: PlayedPod): boolean {
    const { sent } = this.#recorder;
    const isMine = ({ client, pod }: Arrival) => client === AGENT && pod === name;
    if (sent.some((one) => isMine(one) && one.kind === "evict" && !one.isAnswered)) return true;
    return this.#lives.slice(0, -1).some((from, life) => {
      const last = sent.slice(from, this.#lives[life + 1]).findLast(isMine);
      return last !== undefined && (last.kind === "read" || last.kind === "evict");
    });
  }

  #selectedInLog(): string[] {
    return this.#output.flatMap((text) =>
      text.split("\n").flatMap((line) => {
        if (!line.includes('"pod selected for eviction"')) return [];
        return /"podUid":"([^"]+)"/.exec(line)?.[1] ?? [];
      }),
    );
  }
}
