import { parseArgs } from "node:util";
import { createLogger, serveDeviceDriver } from "@nodekeeper/sdk";
import { NodeInterfaces } from "./interfaces.ts";
import { Network } from "./network.ts";

const { values: flags } = parseArgs({
  options: {
    "socket-dir": { type: "string", default: "/var/lib/nodekeeper/plugins_registry" },
    name: { type: "string", default: "network.example.com" },
    interfaces: { type: "string" },
    "move-with": { type: "string", default: "netDevices" },
    directory: { type: "string", default: "/var/lib/nodekeeper-network" },
    interval: { type: "string", default: "2" },
  },
});

const log = createLogger("info");
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const intervalMs = Number(flags.interval) * 1_000;
if (!flags.interfaces || !["netDevices", "hook"].includes(flags["move-with"]) || !(intervalMs >= 100)) {
  log.error("--interfaces is required; --move-with must be netDevices or hook, --interval seconds from 0.1");
  process.exit(2);
}
const network = new Network({
  driver: flags.name,
  interfaces: new NodeInterfaces(flags.name, new RegExp(`^(?:${flags.interfaces})$`)),
  directory: flags.directory,
  usesNetDevices: flags["move-with"] === "netDevices",
  intervalMs,
});

try {
  await network.install();
  const driver = serveDeviceDriver({
    name: flags.name,
    socketDir: flags["socket-dir"],
    rollingUpdate: true,
    devices: (signal) => network.devices(signal),
    status: (signal) => network.status(signal),
    prepare: (claim) => network.prepare(claim),
    unprepare: (claim) => network.unprepare(claim),
    restore: (claims) => network.restore(claims),
    log,
    signal: stop.signal,
  });
  await driver.closed;
} catch (error) {
  log.error({ err: error }, "the driver ended");
  process.exitCode = 1;
}
