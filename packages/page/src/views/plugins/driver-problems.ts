import type { ApiAnswers } from "../../api.ts";
import type { PluginRow } from "./groups.ts";

type Driver = ApiAnswers["devices"][number];
type DriverClaims = ApiAnswers["claims"][number];

/** The rows of plugins; those of device drivers with what is wrong with their devices, ResourceSlices and claims. */
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

function driverProblems({ quarantined, refused, foreign }: Driver): string[] {
  return [
    ...(quarantined > 0
      ? [
          `${quarantined} ${quarantined === 1 ? "device is" : "devices are"} quarantined: invalid, and not published`,
        ]
      : []),
    ...Object.entries(refused).map(([slice, why]) => `the API server refuses ResourceSlice ${slice}: ${why}`),
    ...foreign.map((slice) => `ResourceSlice ${slice} of another client is in one of its pools`),
  ];
}

function claimProblems({ kubelet, reason, problem }: DriverClaims): string[] {
  return [
    ...(kubelet === "refused" ? [`the kubelet refused its DRA plugin: ${reason ?? "without a reason"}`] : []),
    ...(problem ? [problem] : []),
  ];
}
