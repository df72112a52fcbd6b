import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Probe } from "./probe.ts";

/** Share of time in which tasks stalled on a resource: percentages (0 to 100) over three windows. */
export interface Stall {
  avg10: number;
  avg60: number;
  avg300: number;
}

/** Pressure stall information (PSI): https://docs.kernel.org/accounting/psi.html */
export interface Pressure {
  /** At least one task stalled. */
  some: Stall;
  /** All non-idle tasks stalled simultaneously. Kernels before 5.13 do not report it for CPU at the system level. */
  full: Stall | undefined;
}

/** Resource for which the agent reads pressure. */
export type PressureResource = "cpu" | "io" | "memory";

const line =
  /^(some|full) avg10=(\d{1,3}\.\d\d) avg60=(\d{1,3}\.\d\d) avg300=(\d{1,3}\.\d\d) total=\d{1,20}$/;

/** Reads the pressure of the whole host. Undefined if the kernel does not report it. */
export function machinePressure(probe: Probe, resource: PressureResource): Pressure | undefined {
  return pressureAt(probe, `/proc/pressure/${resource}`);
}

/** Lists the resources with pressure stall information. Undefined if the kernel does not report pressure. */
export function readPressureResources(probe: Probe): string[] | undefined {
  const names = probe.kernelNames("/proc/pressure")?.sort();
  // With psi=0, the files exist but cannot be read.
  return probe.optionalKernelText("/proc/pressure/memory") === undefined ? undefined : names;
}

/** Reads a pressure file. Undefined if it is absent or cannot be read. */
export function pressureAt(probe: Probe, path: string): Pressure | undefined {
  // With psi=0 or cgroup.pressure=0, the file exists but cannot be read.
  return probe.parsed(path, probe.optionalKernelText(path) || undefined, parsePressure);
}

/** Parses a pressure file. Throws `invalid`. */
export function parsePressure(text: string): Pressure {
  const stalls = new Map<string, Stall>();
  for (const each of text.trim().split("\n")) {
    const match = line.exec(each);
    if (!match) throw invalid(each);
    const [avg10, avg60, avg300] = match.slice(2).map(Number);
    stalls.set(match[1]!, { avg10: avg10!, avg60: avg60!, avg300: avg300! });
  }
  const some = stalls.get("some");
  if (!some) throw invalid(text);
  return { some, full: stalls.get("full") };
}

function invalid(text: string): NodekeeperError {
  return new NodekeeperError(
    "invalid",
    `${JSON.stringify(text.slice(0, 60))} is not pressure stall information`,
  );
}
