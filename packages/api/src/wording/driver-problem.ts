/** Where a problem of a driver is: its part of a `DriverProblem` of the HTTP API. */
export interface ProblemPlace {
  pool?: string | undefined;
  device?: string | undefined;
  claimUid?: string | undefined;
}

/** Names the claim and the device, or the pool, of a driver's problem. Empty if it does not concern a single one. */
export function problemPlace({ pool, device, claimUid }: ProblemPlace): string {
  const place = device === undefined ? (pool === undefined ? [] : [`pool ${pool}`]) : [`device ${device}`];
  return [...(claimUid === undefined ? [] : [`claim ${claimUid}`]), ...place].join(", ");
}
