// The eviction module as a process of its own, with the commands of bench/peers/katalyst/eviction:
// node bench/peers/eviction-process.ts SOCKETS PODS PLUGINS
import { createInterface } from "node:readline";
import { keepProcessSmall } from "../../packages/agent/src/cli/memory.ts";
import { EvictionPart } from "../eviction-part.ts";
import { benchPods } from "../eviction-pods.ts";

keepProcessSmall();
const [sockets = "", pods = "0", plugins = "0"] = process.argv.slice(2);
const part = await EvictionPart.start(sockets, benchPods(Number(pods), "bench"), "bench", Number(plugins));
console.log(JSON.stringify({ pods: Number(pods) }));
for await (const line of createInterface({ input: process.stdin })) {
  const count = Number(/^rounds (\d+)$/.exec(line)?.[1]);
  if (!(count > 0)) throw new Error(`command ${JSON.stringify(line)} is unknown`);
  const before = process.cpuUsage();
  const startedAt = performance.now();
  await part.rounds(count);
  const { user, system } = process.cpuUsage(before);
  const ms = performance.now() - startedAt;
  console.log(JSON.stringify({ ms: ms / count, cpuMs: (user + system) / 1_000 / count }));
}
process.exit(0);
