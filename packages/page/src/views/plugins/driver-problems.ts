import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { PluginRow } from "./groups.ts";

type Driver = ApiAnswers["devices"][number];
type DriverClaims = ApiAnswers["claims"][number];

/**
 * Returns the rows, with additional problems of device drivers that the driver did not cause: ResourceSlices of other
 * clients in its pools, and failures between the agent and the kubelet.
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
      ...driver.foreign.map((slice) => `ResourceSlice ${slice} of another client is in one of its pools`),
      ...(ofClaims ? claimProblems(ofClaims, row) : []),
    ];
    return { ...row, problems };
  });
}

function claimProblems({ kubelet, reason, problem }: DriverClaims, { driverProblems }: PluginRow): string[] {
  const isShown = driverProblems?.some(({ message }) => message === problem);
  return [
    ...(kubelet === "refused" ? [`the kubelet refused its DRA plugin: ${reason ?? "without a reason"}`] : []),
    ...(problem && !isShown ? [problem] : []),
  ];
}
