import {
  DevicesQuarantined,
  type ErrorId,
  SliceFieldsDropped,
  SlicesNotWritten,
} from "@nodekeeper/api/errors";
import { droppedText } from "@nodekeeper/api/wording";
import type { DeviceFindings } from "./device-news.ts";

/** A part of a driver's reports or answers that the agent does not publish or accept. */
export interface DriverProblem {
  errorId: ErrorId;
  message: string;
  pool?: string | undefined;
  device?: string | undefined;
  claimUid?: string | undefined;
}

/** Of one driver. */
export const MOST_PROBLEMS = 1_000;
const LONGEST_MESSAGE = 1_024;
// Longer than every valid name: an invalid one is part of the problem.
const LONGEST_NAME = 512;

/** Returns what is not published of a driver's devices, slices and fields; at most 1,000 problems. */
export function deviceProblems({ problems, refusedSlices, dropped }: DeviceFindings): DriverProblem[] {
  const found: DriverProblem[] = [
    ...problems.slice(0, MOST_PROBLEMS).map(({ pool, device, field, message }) => ({
      errorId: DevicesQuarantined.id,
      message: field === "" ? message : `${field}: ${message}`,
      pool,
      device,
    })),
    ...[...refusedSlices].map(([slice, message]) => ({
      errorId: SlicesNotWritten.id,
      message: `ResourceSlice ${slice} is not written: ${message}`,
    })),
    ...dropped.slice(0, MOST_PROBLEMS).map(({ field, feature, pool, device }) => ({
      errorId: SliceFieldsDropped.id,
      message: `not stored by the API server: ${droppedText({ field, feature })}`,
      pool,
      device,
    })),
  ];
  return bounded(found);
}

/** Returns at most 1,000 problems, with texts of a limited length. */
export function bounded(problems: readonly DriverProblem[]): DriverProblem[] {
  return problems.slice(0, MOST_PROBLEMS).map(({ errorId, message, pool, device, claimUid }) => ({
    errorId,
    message: cut(message, LONGEST_MESSAGE),
    pool: pool && cut(pool, LONGEST_NAME),
    device: device && cut(device, LONGEST_NAME),
    claimUid: claimUid && cut(claimUid, LONGEST_NAME),
  }));
}

// Half of a surrogate pair can't be encoded.
function cut(text: string, length: number): string {
  return text.slice(0, length).toWellFormed();
}
