import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import { everyday, ScenarioPlayer, SimulatedCri, SimulatedRuntime, simulatedNode } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { KEEP_LABEL, sampleWorkloads } from "../../packages/agent/src/cli/dev-pods.ts";
import { seededRandom } from "../../packages/testing/src/runtime/seeded-random.ts";
import { freePort } from "../e2e/support/free-port.ts";
import { agentFlags } from "../support/agent.ts";
import { NODE, startCluster, type TestCluster } from "../support/cluster.ts";
import { lifecycleDifferences } from "../support/lifecycle-differences.ts";
import { SmallDisk } from "../support/small-disk.ts";
import { type Chance, type FaultKind, faultKinds, type Place } from "./faults.ts";
import { deviceDifferences, evictionDifferences, publishedDifferences, type SentEviction } from "./oracle.ts";
import { makePeers } from "./peers.ts";
import { growthOf, isGrowthJudged, type Sample, sampleOf } from "./samples.ts";
import { SoakedAgent } from "./soaked-agent.ts";

export interface SoakOptions {
  minutes: number;
  seed: number;
  /** The agent is never killed. */
  isOneLife: boolean;
  /** What happens now, a line each. */
  say(line: string): void;
  /** When it aborts, the soak takes down all that it started, and throws its reason. */
  signal: AbortSignal;
}

export interface SoakReport {
  samples: Sample[];
  /** How often each fault was done. */
  faults: Record<string, number>;
  evictions: number;
  agentKills: number;
  /** Where the end differs from what it should be; everything that fails the soak. */
  differences: string[];
  /** What was not tried, and why. */
  leftOut: string[];
}

// The rest of the time shows whether an agent that lives long grows.
const SHARE_WITH_AGENT_KILLS = 0.5;
const SAMPLE_EVERY_MS = 1_000;
const REQUESTS_KEPT = 200;

/** Runs the whole agent on a development cluster under faults, then lets all come to rest and judges it. */
export async function soak({ minutes, seed, isOneLife, say, signal }: SoakOptions): Promise<SoakReport> {
  await using ends = new AsyncDisposableStack();
  const cluster = await startCluster({ removePodsAfterGrace: false });
  ends.defer(() => cluster.stop());
  const sent = recordEvictions(cluster);
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const socket = join(cluster.directory, "cri.sock");
  const cri = new SimulatedCri({ runtime, socket, clock: systemClock });
  await cri.start();
  ends.defer(() => cri.stop());
  const pods = await simulatedNode({
    workloads: sampleWorkloads,
    runtime,
    kubeconfig: cluster.kubeconfig,
    nodeName: NODE,
    log: silentLogger,
  });
  const player = new ScenarioPlayer({ runtime, scenarios: everyday, clock: systemClock, seed });
  const stopPlayer = runAll([player]);
  ends.defer(stopPlayer);
  ends.defer(runAll(pods));

  const flags: Record<string, string> = {
    ...agentFlags(cluster),
    lifecycle: "true",
    runtimeEndpoint: socket,
    evictionSkipLabels: KEEP_LABEL,
    // A call to a plugin that is stopped ends before the plugin continues.
    reportingCallTimeout: "5s",
    evictionCallTimeout: "5s",
    kubeApiRequestTimeout: "5s",
    // Longer than any fault takes a plugin away; what a renamed one left ends within the wait for the end state.
    reportingPluginGracePeriod: "60s",
  };
  mkdirSync(flags.pluginDirectories!, { mode: 0o700 });
  const disk = SmallDisk.mount(flags.stateDir!);
  if (disk) ends.use(disk);
  const peers = makePeers(flags.pluginDirectories!, cluster.directory);
  const everyone = [...peers.speakers, peers.eviction];
  for (const peer of everyone) peer.start();
  ends.defer(async () => void (await Promise.all(everyone.map((peer) => peer.kill()))));
  const agent = new SoakedAgent(flags, `127.0.0.1:${await freePort()}`);
  agent.start();
  ends.defer(async () => void (await agent.stop()));
  await agent.untilReady();

  const samples: Sample[] = [];
  const begun = performance.now();
  const stopSampling = runAll([{ run: (signal) => sampleAll(agent, cluster, begun, samples, signal) }]);
  ends.defer(stopSampling);
  const place: Place = { cluster, cri, peers, agent, disk, unrecorded: [] };
  const durationMs = minutes * 60_000;
  const killsUntilMs = isOneLife ? 0 : durationMs * SHARE_WITH_AGENT_KILLS;
  const faults = await doFaults(place, chanceOf(seed), { begun, durationMs, killsUntilMs }, (line) => {
    signal.throwIfAborted();
    say(line);
  });

  say("faults are over; waiting for the end state");
  await peers.eviction.kill();
  await stopPlayer();
  const client = new PodLifecycleClient({ socket: flags.apiSocket! });
  ends.defer(() => client.close());
  const ofKind = (wanted: string) => peers.speakers.filter(({ kind }) => kind === wanted);
  const differences = await settled("the end state", async () => [
    ...publishedDifferences(cluster, ofKind("reporter")),
    ...deviceDifferences(cluster, ofKind("driver")),
    ...(await lifecycleDifferences(client, runtime)),
    ...sent
      .filter(({ pod }) => isThere(cluster, pod))
      .map(({ pod }) => `${pod} was evicted and is still there`),
  ]);
  differences.push(
    ...(await settled("every eviction is explained", () =>
      evictionDifferences(sent, flags.stateDir!, place.unrecorded),
    )),
  );
  await agent.untilReady().catch((error: Error) => differences.push(error.message));
  await stopSampling();
  const end = await agent.stop();
  if (end !== 0) differences.push(`the agent ended with ${end} after SIGTERM`);
  if (sent.length === 0) differences.push("no pod was evicted: the soak did not test evictions");
  differences.push(...agent.crashes, ...growthOf(samples));
  return {
    samples,
    faults,
    evictions: sent.length,
    agentKills: agent.kills,
    differences,
    leftOut: [
      ...(disk
        ? []
        : [
            "full and read-only disks, restored state directories: a tmpfs can't be mounted here (it needs root)",
          ]),
      ...(isGrowthJudged(samples) ? [] : ["growth: no process of the agent lived for four minutes"]),
    ],
  };
}

async function doFaults(
  place: Place,
  chance: Chance,
  { begun, durationMs, killsUntilMs }: { begun: number; durationMs: number; killsUntilMs: number },
  say: (line: string) => void,
): Promise<Record<string, number>> {
  const done: Record<string, number> = {};
  for (let at = 0; at < durationMs; at = performance.now() - begun) {
    const kinds = faultKinds.filter(
      ({ needsDisk, killsAgent }) => (!needsDisk || place.disk) && (!killsAgent || at < killsUntilMs),
    );
    const kind = chance.oneOf(kinds.flatMap((each): FaultKind[] => Array(each.weight).fill(each)));
    say(`${(at / 1_000).toFixed(0)} s: ${kind.name}`);
    await kind.run(place, chance);
    done[kind.name] = (done[kind.name] ?? 0) + 1;
    await systemClock.sleep(chance.between(200, 3_000));
  }
  return done;
}

/** Waits until `look` returns no differences. On timeout, returns those of its last result, or else the error. */
async function settled(what: string, look: () => Promise<string[]>): Promise<string[]> {
  let last: string[] = [];
  const isEmpty = async () => {
    last = await look();
    return last.length === 0;
  };
  return await until(what, isEmpty).then(
    () => [],
    (error: Error) => (last.length > 0 ? last : [`${error.message}: ${error.cause}`]),
  );
}

function isThere(cluster: TestCluster, pod: string): boolean {
  const [namespace, name = ""] = pod.split("/");
  return cluster.server.store.get("pods", name, namespace) !== undefined;
}

function chanceOf(seed: number): Chance {
  const random = seededRandom(seed);
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  return { between, oneOf: (these) => these[between(0, these.length - 1)]! };
}

/** Evictions that the server is about to handle, from now on. */
function recordEvictions(cluster: TestCluster): SentEviction[] {
  const sent: SentEviction[] = [];
  cluster.admit = ({ method, path, query }) => {
    const [, namespace, name] = /\/namespaces\/([^/]+)\/pods\/([^/]+)\/eviction$/.exec(path) ?? [];
    const pod = name && cluster.server.store.get("pods", name, namespace);
    if (method === "POST" && pod && !query.has("dryRun"))
      sent.push({ uid: pod.metadata.uid ?? "", pod: `${namespace}/${name}`, at: performance.now() });
    return undefined;
  };
  return sent;
}

async function sampleAll(
  agent: SoakedAgent,
  { requests }: TestCluster,
  begun: number,
  samples: Sample[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const sample = await sampleOf(agent, (performance.now() - begun) / 1_000);
    if (sample) samples.push(sample);
    // A soak of hours does not keep what it does not judge.
    requests.splice(0, requests.length - REQUESTS_KEPT);
    await systemClock.sleep(SAMPLE_EVERY_MS, signal).catch(() => {});
  }
}

/** Runs parts in the background. Returns an idempotent function that stops them and waits for them. */
function runAll(parts: readonly { run(signal: AbortSignal): Promise<void> }[]): () => Promise<void> {
  const controller = new AbortController();
  const running = Promise.allSettled(parts.map((part) => part.run(controller.signal)));
  return async () => {
    controller.abort(stopped("the soak is over"));
    await running;
  };
}
