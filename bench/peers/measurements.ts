import type { Measure } from "./measure.ts";
import { measureChanges, measureFirstList, measureRelist } from "./relist-measurements.ts";
import type { RowName } from "./rows.ts";

/** How each row is measured. */
export const measurements: Readonly<Record<RowName, Measure>> = {
  "relist-110": measureRelist(110),
  "relist-500": measureRelist(500),
  "relist-2000": measureRelist(2_000),
  "first-list": measureFirstList,
  "changed-pods": measureChanges,
};
