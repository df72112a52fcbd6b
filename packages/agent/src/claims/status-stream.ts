import { DeviceStatusRefused } from "@nodekeeper/api/errors";
import { WatchDeviceStatusResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimStatuses } from "./claim-statuses.ts";
import { ReportStream } from "./report-stream.ts";

/** Receives the status that drivers report of allocated devices. */
export type StatusSink = Pick<ClaimStatuses, "reported" | "withdrawn" | "forgotten">;

/** A driver's stream of the status of its allocated devices. */
export type StatusStream = ReportStream<WatchDeviceStatusResponse>;

// Field numbers: devices; their conditions, and the addresses of their network data.
const bounds = { repeated: { 1: { 5: {}, 7: { 2: {} } } }, most: 50_000, what: "devices" };

/** Returns a stream that passes its reports to `statuses`. If it is interrupted, the last report stays valid. */
export function statusStream(
  driver: string,
  {
    statuses,
    problems,
    clock,
    log,
  }: { statuses: StatusSink; problems: Pick<ClaimProblems, "report">; clock: Clock; log: Logger },
): StatusStream {
  return new ReportStream({
    driver,
    method: "WatchDeviceStatus",
    about: "the status of devices",
    errorId: DeviceStatusRefused.id,
    message: WatchDeviceStatusResponse,
    bounds,
    onReport: ({ devices }) => statuses.reported(driver, devices),
    onUnreadable: (problem) => {
      const message = `WatchDeviceStatus: ${problem}`;
      problems.report(driver, "status", [{ errorId: DeviceStatusRefused.id, message }]);
    },
    onEnd: () => {},
    clock,
    log,
  });
}
