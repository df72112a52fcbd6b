// A reporter or driver as a process of its own that reports what its file says:
// node test/soak/soak-plugin.ts reporter|driver DIRECTORY NAME FILE FIELDS, where FIELDS is in the names of what it reports
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type DevicePool, type ReportContent, serveDeviceDriver, serveReporterPlugin } from "@nodekeeper/sdk";
import { contentsOf, poolOf, type Said } from "./said.ts";

const LOOK_MS = 50;
const [kind = "", socketDir = "", name = "", file = "", fields = name] = process.argv.slice(2);
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
const parent = process.ppid;

/** What the file says, each time it says something else. */
async function* said(signal: AbortSignal): AsyncGenerator<Said> {
  for (let last = ""; ; ) {
    const text = readFileSync(file, "utf8");
    if (text !== last) yield JSON.parse(text) as Said;
    last = text;
    await sleep(LOOK_MS, undefined, { signal });
    // A soak that was killed leaves no plugins behind.
    if (process.ppid !== parent) process.exit(1);
  }
}

async function* report(signal: AbortSignal): AsyncGenerator<ReportContent[]> {
  for await (const now of said(signal)) {
    for (let left = now.burst; left > 0; left--) yield contentsOf(fields, { ...now, value: -left });
    yield contentsOf(fields, { ...now, bulk: 0 });
  }
}

async function* devices(signal: AbortSignal): AsyncGenerator<DevicePool[]> {
  for await (const now of said(signal)) {
    for (let left = now.burst; left > 0; left--) yield [poolOf({ ...now, value: now.value * 1_000 + left })];
    yield [poolOf(now)];
  }
}

const common = { name, socketDir, signal: stop.signal };
const plugin =
  kind === "driver" ? serveDeviceDriver({ ...common, devices }) : serveReporterPlugin({ ...common, report });
await plugin.closed.catch(() => (process.exitCode = 1));
