import { join } from "node:path";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeObject,
  loadClusterAccess,
  Watcher,
  type WatchHandler,
} from "@nodekeeper/core/kube";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { startControlPlane } from "../../test/e2e/support/control-plane.ts";
import { installNodekeeper } from "../../test/e2e/support/nodekeeper-install.ts";
import { AgentProcess } from "../agent-process.ts";
import { BENCH_NODE, DEVICES, messageBytes } from "../device-messages.ts";
import { percentile } from "../figures.ts";
import { cpuSecondsOf } from "../process-usage.ts";
import { RawDriver } from "../raw-driver.ts";
import { LineProcess } from "./line-process.ts";
import type { Figures, Measure } from "./measure.ts";

const QPS = "1000";

/** Publishes the devices of a driver, whichever side does it. */
interface Publisher {
  pid: number;
  /** Hands all devices over, the one in the middle with this number of changes; answers when that was. */
  publish(changes: number): number;
  stop(): void;
}

/**
 * The first publication of the devices of a driver, and one changed device after that, on a real API server. Times end
 * where a watch of the API server shows the write.
 */
export const measureDevices: Measure = async ({ side, peer, quick }) => {
  const cluster = await startControlPlane();
  const kubeconfig = join(cluster.directory, "admin.kubeconfig");
  const ending = new AbortController();
  const agent = new AgentProcess();
  try {
    await installNodekeeper(cluster);
    await cluster.addNode(BENCH_NODE);
    const { sightings, watching } = await watchSlices(kubeconfig, ending.signal);
    let start = (name: string) => startPeer(peer, kubeconfig, name);
    if (side === "agent") {
      await agent.start({ kubeconfig, "kube-api-qps": QPS, "kube-api-burst": QPS });
      start = (name) => startDriver(agent, name);
    }
    // The API server has had none before the first, and the agent on a node has compiled its code.
    await withPublisher(await start("first.example.com"), async (publisher) => {
      await published(publisher, "first.example.com", sightings);
    });
    const figures = await withPublisher(await start("second.example.com"), async (publisher) => ({
      ...(await published(publisher, "second.example.com", sightings)),
      ...(await changed(publisher, sightings, quick ? 10 : 40)),
    }));
    ending.abort(stopped("the run is over"));
    await watching;
    return figures;
  } finally {
    ending.abort(stopped("the run is over"));
    await agent.remove();
    await cluster.stop();
  }
};

async function withPublisher<T>(
  publisher: Publisher,
  work: (publisher: Publisher) => Promise<T>,
): Promise<T> {
  try {
    return await work(publisher);
  } finally {
    publisher.stop();
    await systemClock.sleep(1_000);
  }
}

async function published(publisher: Publisher, driver: string, sightings: Sightings): Promise<Figures> {
  sightings.reset(driver);
  const cpu = cpuSecondsOf(publisher.pid);
  const startedAt = publisher.publish(0);
  await until(
    () => sightings.devices === DEVICES,
    () => `${sightings.devices} devices of ${driver}`,
  );
  const { first, last } = sightings;
  // Both sides read what they have written.
  await systemClock.sleep(1_000);
  return {
    "devices-first-write": first - startedAt,
    "devices-published": last - startedAt,
    "devices-cpu": (cpuSecondsOf(publisher.pid) - cpu) * 1_000,
  };
}

async function changed(publisher: Publisher, sightings: Sightings, count: number): Promise<Figures> {
  const cpu = cpuSecondsOf(publisher.pid);
  const times: number[] = [];
  for (let change = 1; change <= count; change++) {
    const seen = sightings.count;
    const sentAt = publisher.publish(change);
    await until(
      () => sightings.count > seen,
      () => `change ${change}`,
    );
    times.push(sightings.last - sentAt);
    // Beyond the agent's pause between two rounds of writes.
    await systemClock.sleep(300);
  }
  return {
    "changed-device": percentile(times, 0.5),
    "changed-device-cpu": ((cpuSecondsOf(publisher.pid) - cpu) * 1_000) / count,
  };
}

async function startDriver(agent: AgentProcess, name: string): Promise<Publisher> {
  const messages = [messageBytes(0), messageBytes(1)];
  // It sends nothing at first: the registration is not part of the time.
  const driver = new RawDriver();
  await driver.serve(agent.plugins, name);
  await driver.watched;
  return {
    pid: agent.pid,
    publish: (changes) => driver.send(messages[changes % 2]!),
    stop: () => driver.stop(),
  };
}

async function startPeer(path: string, kubeconfig: string, name: string): Promise<Publisher> {
  const process = new LineProcess([
    path,
    `-kubeconfig=${kubeconfig}`,
    `-driver=${name}`,
    `-node=${BENCH_NODE}`,
    `-qps=${QPS}`,
  ]);
  await process.answer();
  // Its first list.
  await systemClock.sleep(1_000);
  return {
    pid: process.pid,
    publish(changes) {
      process.tell(`publish ${DEVICES} ${changes}`);
      return performance.now();
    },
    stop: () => process.stop(),
  };
}

/** What a watch saw of one driver: the time of each event, and how many devices there are. */
class Sightings implements WatchHandler {
  readonly #times: number[] = [];
  readonly #devices = new Map<string, number>();
  #driver = "";

  reset(driver: string): void {
    this.#driver = driver;
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
    if (driver !== this.#driver) return;
    this.#times.push(at);
    this.#devices.set(object.metadata.name ?? "", devices.length);
  }
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

async function until(check: () => boolean, what: () => string): Promise<void> {
  for (const endsAt = performance.now() + 120_000; !check(); await systemClock.sleep(2)) {
    if (performance.now() > endsAt) throw new Error(`the run waited without success for ${what()}`);
  }
}
