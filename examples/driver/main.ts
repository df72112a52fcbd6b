import { parseArgs } from "node:util";
import { createLogger, serveDeviceDriver } from "@nodekeeper/sdk";
import { Accelerators } from "./accelerators.ts";
import { freedAccelerators, prepareAccelerators } from "./preparation.ts";

const { values: flags } = parseArgs({
  options: {
    "socket-dir": { type: "string", default: "/var/lib/nodekeeper/plugins_registry" },
    name: { type: "string", default: "accelerators.example.com" },
    count: { type: "string", default: "8" },
    interval: { type: "string", default: "5s" },
    "numa-nodes": { type: "string", default: "2" },
    "exit-with-parent": { type: "boolean", default: false },
  },
});

const log = createLogger("info");
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
// The parent's end of our stdin closes when it dies, however it dies.
if (flags["exit-with-parent"]) process.stdin.resume().once("end", () => stop.abort());

const [count, numaNodes] = [Number(flags.count), Number(flags["numa-nodes"])];
const interval = /^(\d+)(ms|s)$/.exec(flags.interval);
const intervalMs = Number(interval?.[1]) * (interval?.[2] === "s" ? 1_000 : 1);
if (
  !Number.isInteger(count) ||
  count < 0 ||
  count > 10_000 ||
  !(numaNodes >= 1 && numaNodes <= 64) ||
  !(intervalMs >= 50 && intervalMs <= 3_600_000)
) {
  log.error(
    { count: flags.count, interval: flags.interval, numaNodes: flags["numa-nodes"] },
    "--count must be 0 to 10000, --interval 50ms to 3600s, --numa-nodes 1 to 64",
  );
  process.exit(2);
}
const accelerators = new Accelerators(count, intervalMs, Math.trunc(numaNodes));
const driver = serveDeviceDriver({
  name: flags.name,
  socketDir: flags["socket-dir"],
  rollingUpdate: true,
  devices: (signal) => accelerators.devices(signal),
  health: (signal) => accelerators.health(signal),
  prepare: prepareAccelerators,
  // Nothing is set up on the node, so there is nothing to undo.
  unprepare: (claim) => log.info({ devices: freedAccelerators(claim) }, "accelerators are free"),
  log,
  signal: stop.signal,
});

try {
  await driver.closed;
} catch {
  // The library has logged why.
  process.exitCode = 1;
}
process.stdin.pause();
