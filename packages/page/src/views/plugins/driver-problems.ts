import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { droppedText } from "@nodekeeper/api/wording";
import type { PluginRow } from "./groups.ts";

// The driver's page lists the rest.
const MOST_DROPPED = 3;

type Driver = ApiAnswers["devices"][number];
type DriverClaims = ApiAnswers["claims"][number];

/**
 * Returns the rows of plugins; those of device drivers also have the problems of their devices, ResourceSlices and
 * claims.
 */
export function withDriverProblems(
  rows: readonly PluginRow[],
  drivers: readonly Driver[],
  claims: readonly DriverClaims[],
): PluginRow[] {
  return rows.map((row) => {
    const driver = row.type === "DRAPlugin" && drivers.find(({ name }) => name === row.name);
    if (!driver) return row;
    const ofClaims = claims.find((each) => each.driver === row.name);
    const problems = [
      ...row.problems,
      ...driverProblems(driver),
      ...(ofClaims ? claimProblems(ofClaims) : []),
    ];
    return { ...row, problems };
  });
}

function driverProblems({ quarantined, refused, foreign, dropped }: Driver): string[] {
  return [
    ...(quarantined > 0
      ? [`${quarantined} ${quarantined === 1 ? "device is" : "devices are"} quarantined, and not published`]
      : []),
    ...Object.entries(refused).map(([slice, why]) => `the API server refuses ResourceSlice ${slice}: ${why}`),
    ...dropped.slice(0, MOST_DROPPED).map((field) => `the API server does not store ${droppedText(field)}`),
    ...(dropped.length > MOST_DROPPED
      ? [`the API server does not store ${dropped.length - MOST_DROPPED} more fields`]
      : []),
    ...foreign.map((slice) => `ResourceSlice ${slice} of another client is in one of its pools`),
  ];
}

function claimProblems({ kubelet, reason, problem }: DriverClaims): string[] {
  return [
    ...(kubelet === "refused" ? [`the kubelet refused its DRA plugin: ${reason ?? "without a reason"}`] : []),
    ...(problem ? [problem] : []),
  ];
}
