// A driver as a process, which breaks a rule about its start or end: node run-driver.ts DIRECTORY BREACH
import { existsSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServerError, Status } from "nice-grpc";
import { poolOf, preparedDevice, serveTestDriver, services, untilCancelled } from "./test-driver.ts";

const [directory = "", breach] = process.argv.slice(2);
const path = join(directory, "driver.sock");
const marker = join(directory, "started");
const isRestarted = existsSync(marker);
writeFileSync(marker, "");
// Left by the process before it, which was killed.
if (existsSync(path)) unlinkSync(path);

// Known by the agent's request for the devices, which does not wait for other calls.
const nodeName = Promise.withResolvers<string>();
const name = breach === "another name" && isRestarted ? "other.example.com" : "gpu.example.com";
await serveTestDriver(path, {
  info: {
    type: "DRAPlugin",
    name,
    endpoint: "",
    supportedVersions: ["nodekeeper.devices.v1alpha2", ...services],
  },
  async *devices({ nodeName: told }, { signal }) {
    nodeName.resolve(told);
    yield poolOf("gpu-0", "gpu-1");
    await untilCancelled(signal);
  },
  async restore() {
    await nodeName.promise;
    return {};
  },
  async prepare({ devices }) {
    if (breach === "forgotten claims" && isRestarted)
      throw new ServerError(Status.INTERNAL, "the device is in use");
    return { devices: devices.map((device) => preparedDevice(device)) };
  },
});
process.on("SIGTERM", () => {
  if (breach === "no end") return;
  if (breach !== "socket left") unlinkSync(path);
  process.exit(0);
});
