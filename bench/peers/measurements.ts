import {
  emptyProcess,
  katalystAgent,
  katalystReporter,
  measureAgent,
  nfdWorker,
} from "./agent-measurements.ts";
import { measureClaims } from "./claim-measurements.ts";
import { measureDevices } from "./device-measurements.ts";
import { measureEviction } from "./eviction-measurements.ts";
import type { Measure } from "./measure.ts";
import { measureChanges, measureFirstList, measureRelist } from "./relist-measurements.ts";
import { measureReporting, measureReportingHung } from "./reporting-measurements.ts";
import { type GoPeer, katalystProgram } from "./row.ts";
import type { Workload } from "./rows.ts";

/** How a workload is measured. */
interface Measurement {
  measure: Measure;
  /** What a pair takes, about. */
  seconds: number;
  /** Plugins that both sides call. */
  plugins?: GoPeer;
  /** Whether both sides run in the same time: they are mostly at rest. */
  sideBySide?: boolean;
}

const reporters = katalystProgram("plugins", "pkg/protocol/reporterplugin/v1alpha1");
const evictionPlugins = katalystProgram("evictionplugins", "pkg/protocol/evictionplugin/v1alpha1");

/** How each workload is measured. */
export const measurements: Readonly<Record<Workload, Measurement>> = {
  "relist-110": { measure: measureRelist(110), seconds: 12 },
  "relist-500": { measure: measureRelist(500), seconds: 20 },
  "relist-2000": { measure: measureRelist(2_000), seconds: 25 },
  "first-list": { measure: measureFirstList, seconds: 5 },
  "changed-pods": { measure: measureChanges, seconds: 45 },
  devices: { measure: measureDevices, seconds: 70 },
  claims: { measure: measureClaims, seconds: 95 },
  eviction: { measure: measureEviction, seconds: 25, plugins: evictionPlugins },
  reporting: { measure: measureReporting, seconds: 140, plugins: reporters },
  "reporting-hung": { measure: measureReportingHung, seconds: 85, plugins: reporters },
  "agent-katalyst": { measure: measureAgent(katalystAgent), seconds: 65, sideBySide: true },
  "agent-nfd": { measure: measureAgent(nfdWorker), seconds: 65, sideBySide: true },
  "agent-reporting": { measure: measureAgent(katalystReporter), seconds: 45, sideBySide: true },
  "agent-off": { measure: measureAgent(emptyProcess), seconds: 25, sideBySide: true },
};
