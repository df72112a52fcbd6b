import { katalystAgent, measureAgent, nfdWorker } from "./agent-measurements.ts";
import { measureClaims } from "./claim-measurements.ts";
import { measureDevices } from "./device-measurements.ts";
import { measureEviction } from "./eviction-measurements.ts";
import type { Measure } from "./measure.ts";
import { measureChanges, measureFirstList, measureRelist } from "./relist-measurements.ts";
import { measureReporting } from "./reporting-measurements.ts";
import type { Workload } from "./rows.ts";

/** How each workload is measured. */
export const measurements: Readonly<Record<Workload, Measure>> = {
  "relist-110": measureRelist(110),
  "relist-500": measureRelist(500),
  "relist-2000": measureRelist(2_000),
  "first-list": measureFirstList,
  "changed-pods": measureChanges,
  devices: measureDevices,
  claims: measureClaims,
  eviction: measureEviction,
  reporting: measureReporting,
  "agent-katalyst": measureAgent(katalystAgent),
  "agent-nfd": measureAgent(nfdWorker),
};
