import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeObject,
  loadClusterAccess,
  Watcher,
  type WatchHandler,
} from "@nodekeeper/core/kube";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { buildGo } from "../test/e2e/prepare/go-build.ts";
import { startControlPlane } from "../test/e2e/support/control-plane.ts";
import { AgentProcess } from "./agent-process.ts";
import { BENCH_NODE, DEVICES, messageBytes } from "./device-messages.ts";
import { type Figure, percentile } from "./figures.ts";
import { RawDriver } from "./raw-driver.ts";

const module = join(import.meta.dirname, "peers/resourceslices");

/** Publishes the devices of one driver, whichever does it. */
interface Publisher {
  /** Publishes all devices; the one in the middle has the tick. Answers when it was handed over. */
  publish(tick: number): number;
  cpuSeconds(): number;
  stop(): Promise<void> | void;
}

/** What a watch saw of one driver: the time of each event, and how many devices there are. */
class Sightings implements WatchHandler {
  readonly #times: number[] = [];
  readonly #devices = new Map<string, number>();
  driver = "";

  reset(driver: string): void {
    this.driver = driver;
    this.#times.length = 0;
    this.#devices.clear();
  }

  get count(): number {
    return this.#times.length;
  }

  get first(): number {
    return this.#times[0] ?? Number.NaN;
  }

  get last(): number {
    return this.#times.at(-1) ?? Number.NaN;
  }

  get devices(): number {
    return [...this.#devices.values()].reduce((sum, count) => sum + count, 0);
  }

  onReplace(): void {}
  onDelete(): void {}
  onUpsert(object: KubeObject): void {
    const at = performance.now();
    const { driver, devices = [] } = object.spec as { driver: string; devices?: unknown[] };
    if (driver !== this.driver) return;
    this.#times.push(at);
    this.#devices.set(object.metadata.name ?? "", devices.length);
  }
}

/**
 * The agent and upstream's controller (k8s.io/dynamic-resource-allocation) in turns, on the same API server: the first
 * publication of 10,000 devices, and one changed device after that. Times end where a watch of the API server shows the
 * write.
 */
export async function benchDevicePeers(quick: boolean): Promise<Figure[]> {
  const peer = await buildGo({ name: "resourceslices", module, package: ".", version: "v0.37.2" });
  if ("missing" in peer) throw new Error(`the peer can't be built: ${peer.missing}`);
  const cluster = await startControlPlane();
  const kubeconfig = join(cluster.directory, "admin.kubeconfig");
  const ending = new AbortController();
  const agent = new AgentProcess();
  try {
    await cluster.addNode(BENCH_NODE);
    const { sightings, watching } = await watchSlices(kubeconfig, ending.signal);
    await agent.start({ kubeconfig, "kube-api-qps": "1000", "kube-api-burst": "1000" });
    const ours: Round[] = [];
    const theirs: Round[] = [];
    for (let turn = 0; turn < (quick ? 2 : 5); turn++) {
      const changes = quick ? 10 : 40;
      const own = `own-${turn}.example.com`;
      ours.push(await runRound(await publishByAgent(agent, own), own, sightings, changes));
      const other = `other-${turn}.example.com`;
      theirs.push(
        await runRound(await publishByPeer(peer.path, kubeconfig, other), other, sightings, changes),
      );
    }
    ending.abort(stopped("the benchmark is over"));
    await watching;
    return figuresOf(ours, theirs);
  } finally {
    ending.abort(stopped("the benchmark is over"));
    await agent.remove();
    await cluster.stop();
  }
}

interface Round {
  firstWriteMs: number;
  completeMs: number;
  publicationCpuMs: number;
  changesMs: number[];
  changeCpuMs: number;
}

async function runRound(
  publisher: Publisher,
  driver: string,
  sightings: Sightings,
  changes: number,
): Promise<Round> {
  try {
    sightings.reset(driver);
    const cpu = publisher.cpuSeconds();
    const startedAt = publisher.publish(0);
    await until(
      () => sightings.devices === DEVICES,
      () => `${sightings.devices} devices of ${driver}`,
    );
    const [firstWriteMs, completeMs] = [sightings.first - startedAt, sightings.last - startedAt];
    await systemClock.sleep(1_000);
    const publicationCpuMs = (publisher.cpuSeconds() - cpu) * 1_000;
    const before = publisher.cpuSeconds();
    const changesMs: number[] = [];
    for (let tick = 1; tick <= changes; tick++) {
      const seen = sightings.count;
      const sentAt = publisher.publish(tick);
      await until(
        () => sightings.count > seen,
        () => `change ${tick} of ${driver}`,
      );
      changesMs.push(sightings.last - sentAt);
      // Beyond the pause between two rounds of writes.
      await systemClock.sleep(300);
    }
    const changeCpuMs = ((publisher.cpuSeconds() - before) * 1_000) / changes;
    return { firstWriteMs, completeMs, publicationCpuMs, changesMs, changeCpuMs };
  } finally {
    await publisher.stop();
    // The other side's turn starts on a quiet machine.
    await systemClock.sleep(1_000);
  }
}

async function publishByAgent(agent: AgentProcess, name: string): Promise<Publisher> {
  const messages = [messageBytes(0), messageBytes(1)];
  // Nothing is sent at first, so that the registration is not part of the time.
  const driver = new RawDriver();
  await driver.serve(agent.plugins, name);
  await driver.watched;
  return {
    publish: (tick) => driver.send(messages[tick % 2]!),
    cpuSeconds: () => agent.cpuSeconds(),
    stop: () => driver.stop(),
  };
}

async function publishByPeer(path: string, kubeconfig: string, name: string): Promise<Publisher> {
  const child = spawn(path, [`--kubeconfig=${kubeconfig}`, `--driver=${name}`, `--node=${BENCH_NODE}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stdout).once("line", () => resolve());
    child.once("exit", (code) => reject(new Error(`the peer exited with ${code}`)));
  });
  child.stdout.resume();
  // Its first list.
  await systemClock.sleep(1_000);
  return {
    publish(tick) {
      child.stdin.write(`publish ${DEVICES} ${tick}\n`);
      return performance.now();
    },
    cpuSeconds: () => cpuSecondsOf(child),
    stop: () =>
      new Promise<void>((resolve) => {
        child.removeAllListeners("exit");
        child.once("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
}

async function watchSlices(kubeconfig: string, signal: AbortSignal) {
  const metrics = createKubeMetrics(new Registry());
  const common = { clock: systemClock, log: silentLogger, metrics };
  const access = await loadClusterAccess({ kubeconfig, environment: {} });
  const client = createKubeClient({ ...common, access, version: "bench" });
  const resource = await client.resolve({ group: "resource.k8s.io", version: "v1", kind: "ResourceSlice" });
  if (!resource) throw new Error("the API server serves no ResourceSlices");
  const sightings = new Sightings();
  const watcher = new Watcher({ ...common, client }, { resource, handler: sightings });
  const watching = watcher.run(signal).finally(() => client.close());
  await watcher.synced;
  return { sightings, watching };
}

function figuresOf(ours: readonly Round[], theirs: readonly Round[]): Figure[] {
  const pair = (name: string, unit: string, read: (round: Round) => number): Figure[] => {
    const [own, other] = [ours, theirs].map((rounds) => percentile(rounds.map(read), 0.5)) as [
      number,
      number,
    ];
    return [
      { name: `${name}: agent`, value: own, unit },
      { name: `${name}: upstream's controller`, value: other, unit },
      { name: `${name}: ratio`, value: own / other, unit: "", budget: 1 },
    ];
  };
  const changes = (share: number) => (rounds: readonly Round[]) =>
    percentile(
      rounds.flatMap(({ changesMs }) => changesMs),
      share,
    );
  const change = (name: string, share: number): Figure[] => {
    const [own, other] = [changes(share)(ours), changes(share)(theirs)];
    return [
      { name: `${name}: agent`, value: own, unit: "ms" },
      { name: `${name}: upstream's controller`, value: other, unit: "ms" },
      { name: `${name}: ratio`, value: own / other, unit: "", budget: 1 },
    ];
  };
  return [
    ...pair("10,000 devices, first write", "ms", ({ firstWriteMs }) => firstWriteMs),
    ...pair("10,000 devices, all published", "ms", ({ completeMs }) => completeMs),
    ...pair("10,000 devices, CPU", "ms", ({ publicationCpuMs }) => publicationCpuMs),
    ...change("one changed device, p50", 0.5),
    ...change("one changed device, p99", 0.99),
    ...pair("one changed device, CPU", "ms", ({ changeCpuMs }) => changeCpuMs),
  ];
}

function cpuSecondsOf({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime = 0, stime = 0] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14).map(Number);
  // USER_HZ is 100 on every Linux that Node runs on.
  return (utime + stime) / 100;
}

async function until(check: () => boolean, what: () => string): Promise<void> {
  for (const endsAt = performance.now() + 120_000; !check(); await systemClock.sleep(2)) {
    if (performance.now() > endsAt) throw new Error(`the benchmark waited without success for ${what()}`);
  }
}
