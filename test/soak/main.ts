// The whole agent under faults for a while, and whether its end state is right: npm run soak -- --help
import { readArguments } from "../../scripts/arguments.ts";
import { tableOf } from "./samples.ts";
import { soak } from "./soak.ts";

const help = `usage: npm run soak -- --minutes N [options]

Runs the agent as a process on a development cluster (an API server and a container runtime in memory) beside four
reporters, two drivers and an eviction plugin, and does faults by chance: kills of the agent and the plugins, plugins
that are stopped for a while, floods of reports and of device changes, outages of the API server and the container
runtime, full and read-only disks, restored state directories, plugins that come back under another name. Then all comes to rest, and the end state is compared with what the plugins report.

  --minutes N    how long faults are done
  --seed N       the same faults in the same order again (default: random, printed)
  --one-life     the agent is never killed: how its memory grows in one life
  --quiet        no line for each fault
  --help

Exits with 1 where the end state differs or it was ended early, a pod was evicted twice or without a record, the agent ended by itself, or
its memory or descriptors grew; 2 for arguments that make no sense.`;

const options = {
  minutes: { type: "string" },
  seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
  "one-life": { type: "boolean", default: false },
  quiet: { type: "boolean", default: false },
} as const;
const { minutes, seed, isOneLife, quiet } = readArguments(help, { options }, ({ values }) => {
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0) || !Number.isInteger(seed))
    throw new Error("--minutes takes a number above 0, --seed a whole number");
  return { minutes, seed, isOneLife: values["one-life"], quiet: values.quiet };
});
console.log(`soak of ${minutes} minutes, seed ${seed}`);
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => stop.abort(new Error(`ended by ${signal}`)));
const report = await soak({
  minutes,
  seed,
  isOneLife,
  say: (line) => quiet || console.log(line),
  signal: stop.signal,
}).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
  console.error(`${stop.signal.reason.message}; nothing was judged`);
  process.exit(1);
});
const counts = Object.entries(report.faults).map(([name, count]) => `${name} ${count}`);
console.log(`
${tableOf(report.samples)}

Least / median / most of each minute.
faults: ${counts.sort().join(", ")}
kills of the agent: ${report.agentKills}; evictions: ${report.evictions}`);
for (const text of report.leftOut) console.log(`left out: ${text}`);
for (const text of report.differences) console.log(`DIFFERENCE: ${text}`);
console.log(`seed ${seed}: ${report.differences.length} differences`);
process.exit(report.differences.length > 0 ? 1 : 0);
