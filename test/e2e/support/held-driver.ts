import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serveDeviceDriver } from "@nodekeeper/sdk";

// A driver in its own process that a test can pause: at each step it creates `at/<step>-<claim>`, and waits while
// `hold/<step>-<claim>` exists. `setup/` has a file for each device that is set up, named after the device and
// containing the UID of the claim. Like the state of hardware, the files outlive the process.

const [name = "", socketDir = "", directory = ""] = process.argv.slice(2);
const setUp = join(directory, "setup");
for (const each of ["setup", "at", "hold"]) mkdirSync(join(directory, each), { recursive: true });

async function step(step: string, claim: string): Promise<void> {
  writeFileSync(join(directory, "at", `${step}-${claim}`), "");
  while (existsSync(join(directory, "hold", `${step}-${claim}`))) await sleep(20);
}

const driver = serveDeviceDriver({
  name,
  socketDir,
  async *devices() {
    yield [{ devices: Array.from({ length: 4 }, (_, at) => ({ name: `device-${at}` })) }];
  },
  async prepare(claim) {
    await step("prepare", claim.name);
    for (const { device } of claim.devices) writeFileSync(join(setUp, device), claim.uid);
    await step("prepared", claim.name);
    return claim.devices.map(({ request, pool, device }) => ({
      request,
      pool,
      device,
      edits: {
        env: { DEVICE: device },
        mounts: [{ hostPath: join(setUp, device), containerPath: "/run/device", options: ["ro"] }],
      },
    }));
  },
  async unprepare({ name: claim, uid, devices }) {
    await step("unprepare", claim);
    // By device, as hardware is reset: for a claim that ended long ago, that would be the next one's.
    for (const { device } of devices) rmSync(join(setUp, device), { force: true });
    const left = readdirSync(setUp).filter((device) => readFileSync(join(setUp, device), "utf8") === uid);
    for (const device of left) rmSync(join(setUp, device));
    await step("unprepared", claim);
  },
});
process.once("SIGTERM", () => void driver.stop());
await driver.closed;
