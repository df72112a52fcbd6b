import { parseArgs } from "node:util";
import { createLogger, serveReporterPlugin } from "@nodekeeper/sdk";
import { widgetReports } from "./widgets.ts";

const { values: flags } = parseArgs({
  options: {
    "socket-dir": { type: "string", default: "/var/lib/nodekeeper/plugins_registry" },
    name: { type: "string", default: "example-reporter" },
    interval: { type: "string", default: "1s" },
    "exit-with-parent": { type: "boolean", default: false },
  },
});

const log = createLogger("info");
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
// The parent's end of our stdin closes when it dies, however it dies.
if (flags["exit-with-parent"]) process.stdin.resume().once("end", () => stop.abort());

const intervalMs = millisecondsOf(flags.interval);
const plugin = serveReporterPlugin({
  name: flags.name,
  socketDir: flags["socket-dir"],
  rollingUpdate: true,
  report: (signal) => widgetReports(intervalMs, signal),
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

function millisecondsOf(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|s)$/.exec(text) ?? [];
  const ms = Number(amount) * (unit === "s" ? 1_000 : 1);
  if (ms >= 50 && ms <= 3_600_000) return ms;
  log.error({ interval: text }, "--interval must be 50ms to 3600s, such as 500ms or 2s");
  process.exit(2);
}
