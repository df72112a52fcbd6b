import type { Row } from "./row.ts";
import { agentRows } from "./rows/agent.ts";
import { deviceRows } from "./rows/devices.ts";
import { evictionRows } from "./rows/eviction.ts";
import { lifecycleRows } from "./rows/lifecycle.ts";
import { reportingRows } from "./rows/reporting.ts";

const kept = { ...lifecycleRows, ...deviceRows, ...evictionRows, ...reportingRows, ...agentRows };

export type RowName = keyof typeof kept;
export type Workload = (typeof kept)[RowName]["workload"];

/** All rows by name, in the order of docs/performance.md. */
export const rows: Readonly<Record<RowName, Row & { workload: Workload }>> = kept;
