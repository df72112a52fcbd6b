// Prints the RSS in MB of a process that watches so many pods: node --expose-gc eviction-memory.ts PODS
// The API server is in a process of its own.
import { keepProcessSmall } from "../packages/agent/src/cli/memory.ts";

// Before anything else is loaded, as the agent does.
keepProcessSmall();
const { fork } = await import("node:child_process");
const { default: EventEmitter } = await import("node:events");
const { fileURLToPath } = await import("node:url");
const { Registry, silentLogger, systemClock } = await import("@nodekeeper/core/lib");
const { createKubeClient, createKubeMetrics } = await import("@nodekeeper/core/kube");
const { createEvictionMetrics, PodWatch } = await import("../packages/agent/src/eviction/index.ts");

const [count = "0"] = process.argv.slice(2);
const script = fileURLToPath(new URL("./eviction-apiserver.ts", import.meta.url));
const child = fork(script, [count], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
const [server] = (await EventEmitter.once(child, "message")) as [string];
const registry = new Registry();
const kubeMetrics = createKubeMetrics(registry);
const common = { clock: systemClock, log: silentLogger };
const client = createKubeClient({
  access: { source: "bench", server: new URL(server) },
  version: "bench",
  metrics: kubeMetrics,
  ...common,
});
const watch = new PodWatch({
  client,
  nodeName: "bench",
  kubeMetrics,
  metrics: createEvictionMetrics(registry),
  ...common,
});
const stop = new AbortController();
const running = watch.run(stop.signal);
while (!watch.isSynced) await systemClock.sleep(20);
if (watch.list().length !== Number(count)) throw new Error(`${watch.list().length} pods`);
for (let round = 0; round < 3; round++) {
  globalThis.gc?.();
  await systemClock.sleep(200);
}
if (process.env.DEBUGMEM) console.error(process.memoryUsage());
process.stdout.write(`${process.memoryUsage().rss / 1e6}\n`);
stop.abort();
await running;
client.close();
child.kill("SIGKILL");
