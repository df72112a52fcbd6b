// Loaded into an agent before it starts (--import): measures how much CPU time its thread uses in each turn of the event
// loop, which waiting for a busy machine does not change. SIGUSR2 writes the longest turn since the last one, in
// milliseconds, to the file TURN_METER_FILE.
import { renameSync, writeFileSync } from "node:fs";
import { threadCpuMs } from "@nodekeeper/core/lib";

const file = process.env.TURN_METER_FILE ?? "";
let longestMs = 0;
let startedAt = threadCpuMs();

function turn(): void {
  const now = threadCpuMs();
  longestMs = Math.max(longestMs, now - startedAt);
  startedAt = now;
  setImmediate(turn).unref();
}

turn();
process.on("SIGUSR2", () => {
  writeFileSync(`${file}.new`, String(longestMs));
  renameSync(`${file}.new`, file);
  longestMs = 0;
});
