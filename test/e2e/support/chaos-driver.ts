import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serveDeviceDriver } from "@nodekeeper/sdk";

// A driver as a process of its own, for chaos on a real node:
//   node chaos-driver.ts NAME SOCKET DIRECTORY DEVICES
// Its devices are exclusive. `setup/` has a file for each device that is set up, named after the device and containing
// the UID of the claim. Like the state of hardware, the files outlive the process and are shared by its instances.
// `journal` has a line for each step. `late` has the delay of calls in milliseconds. Cancelled calls are completed too.

const [name = "", socketPath = "", directory = "", devices = "0"] = process.argv.slice(2);
const setUp = join(directory, "setup");
mkdirSync(setUp, { recursive: true });

function note(step: string, claim: string, device: string): void {
  appendFileSync(join(directory, "journal"), `${JSON.stringify({ at: Date.now(), step, claim, device })}\n`);
}

async function beLate(): Promise<void> {
  const file = join(directory, "late");
  await sleep(existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
}

const driver = serveDeviceDriver({
  name,
  socketPath,
  socketDir: "",
  async *devices() {
    yield [{ devices: Array.from({ length: Number(devices) }, (_, at) => ({ name: `device-${at}` })) }];
  },
  async prepare({ uid, devices }) {
    await beLate();
    for (const { device } of devices) {
      const holder = existsSync(join(setUp, device)) ? readFileSync(join(setUp, device), "utf8") : uid;
      note(holder === uid ? "prepare" : "taken", uid, device);
      if (holder !== uid) throw new Error(`${device} is set up for claim ${holder}`);
      writeFileSync(join(setUp, device), uid);
    }
    return devices.map(({ request, pool, device }) => ({
      request,
      pool,
      device,
      edits: { env: { CHAOS_DEVICE: device, CHAOS_CLAIM: uid } },
    }));
  },
  async unprepare({ uid }) {
    const held = readdirSync(setUp).filter((device) => readFileSync(join(setUp, device), "utf8") === uid);
    for (const device of held) note("unprepare", uid, device);
    await beLate();
    for (const device of held) rmSync(join(setUp, device), { force: true });
  },
});
process.once("SIGTERM", () => void driver.stop());
await driver.closed;
