// The conformance suite for drivers: acts as the agent and the kubelet, and judges what a driver answers.
// rules.ts: what is checked; checks/: how; bench.ts: the driver under test; suite.ts: runs all checks.
export type { ConformanceOptions } from "./bench.ts";
export { isJsonObject } from "./checks/reports.ts";
export type { Finding } from "./finding.ts";
export { checkDriver } from "./suite.ts";
