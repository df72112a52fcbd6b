import { parseArgs } from "node:util";
import { createLogger, serveEvictionPlugin } from "@nodekeeper/sdk";
import { leakingPods } from "./leaks.ts";

const { values: flags } = parseArgs({
  options: {
    "socket-dir": { type: "string", default: "/var/lib/nodekeeper/plugins_registry" },
    name: { type: "string", default: "example-eviction" },
    limit: { type: "string", default: "1600" },
    leak: { type: "string", default: "8" },
    "first-pressure": { type: "string" },
    "exit-with-parent": { type: "boolean", default: false },
  },
});

const log = createLogger("info");
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
// The parent's end of our stdin closes when it dies, however it dies.
if (flags["exit-with-parent"]) process.stdin.resume().once("end", () => stop.abort());

const limitMiB = Number(flags.limit);
const leakMiB = Number(flags.leak);
if (![limitMiB, leakMiB].every((value) => value > 0 && value <= 1_000_000)) {
  log.error(
    { limit: flags.limit, leak: flags.leak },
    "--limit and --leak must be MiB, above 0 and at most 1000000",
  );
  process.exit(2);
}
const firstPressure = flags["first-pressure"];
const seconds = Number(/^(\d{1,4})s$/.exec(firstPressure ?? "0s")?.[1]);
if (Number.isNaN(seconds)) {
  log.error({ firstPressure }, "--first-pressure must be 0s to 9999s");
  process.exit(2);
}
const plugin = serveEvictionPlugin({
  name: flags.name,
  socketDir: flags["socket-dir"],
  rollingUpdate: true,
  ...leakingPods({ limitMiB, leakMiB, ...(firstPressure ? { firstPressureMs: seconds * 1_000 } : {}) }),
  log,
  signal: stop.signal,
});

try {
  await plugin.closed;
} catch {
  // The library has logged why.
  process.exitCode = 1;
}
process.stdin.pause();
