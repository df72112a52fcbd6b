import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Probe } from "./probe.ts";

/** A share of time in which tasks stood still for want of a resource, percent (0 to 100), and the whole of it. */
export interface Stall {
  avg10: number;
  avg60: number;
  avg300: number;
  /** Since boot, or since the cgroup was made, milliseconds. */
  totalMs: number;
}

/** Pressure stall information: https://docs.kernel.org/accounting/psi.html */
export interface Pressure {
  /** At least one task stood still. */
  some: Stall;
  /** All tasks stood still at once; the kernel has none for the machine's CPU before 5.13. */
  full: Stall | undefined;
}

/** A resource whose shortage the kernel measures. */
export type PressureResource = "cpu" | "io" | "memory";

const line =
  /^(some|full) avg10=(\d{1,3}\.\d\d) avg60=(\d{1,3}\.\d\d) avg300=(\d{1,3}\.\d\d) total=(\d{1,20})$/;

/** The machine's pressure; undefined where the kernel measures none. */
export function machinePressure(probe: Probe, resource: PressureResource): Pressure | undefined {
  return pressureAt(probe, `/proc/pressure/${resource}`);
}

/** The content of a pressure file; undefined where there is none. */
export function pressureAt(probe: Probe, path: string): Pressure | undefined {
  // With psi=0, and with cgroup.pressure 0, the kernel shows the file and refuses to read it.
  return probe.parsed(path, probe.optionalKernelText(path) || undefined, parsePressure);
}

/** Reads a pressure file. Throws `invalid`. */
export function parsePressure(text: string): Pressure {
  const stalls = new Map<string, Stall>();
  for (const each of text.trim().split("\n")) {
    const match = line.exec(each);
    if (!match) throw invalid(each);
    const [avg10, avg60, avg300, total] = match.slice(2).map(Number);
    stalls.set(match[1]!, { avg10: avg10!, avg60: avg60!, avg300: avg300!, totalMs: total! / 1000 });
  }
  const some = stalls.get("some");
  if (!some) throw invalid(text);
  return { some, full: stalls.get("full") };
}

function invalid(text: string): NodekeeperError {
  return new NodekeeperError(
    "invalid",
    `${JSON.stringify(text.slice(0, 60))} is no pressure stall information`,
  );
}
