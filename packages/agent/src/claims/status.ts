import type { ApiAnswers, Frozen } from "@nodekeeper/api/openapi";
import type { ClaimRecord } from "./claim-records.ts";
import type { DriverState } from "./driver-state.ts";

/** The agent's registration with the kubelet for one driver, and the driver's claims. */
export type DriverClaims = Frozen<ApiAnswers["claims"][number]>;

/**
 * Returns the status of a driver.
 * @param state undefined if only records are left of the driver
 * @param reportProblem why the status of its devices is not written, or a part of an answer or report is refused
 */
export function driverClaims(
  driver: string,
  state: DriverState | undefined,
  records: readonly ClaimRecord[],
  reportProblem: string | undefined,
): DriverClaims {
  const registration = state?.plugin?.registration;
  return {
    driver,
    kubelet: state?.isLeftAlone ? "ownPlugin" : (registration?.state ?? "none"),
    reason: registration?.state === "refused" ? registration.reason : undefined,
    isPreparing: state?.connection?.client !== undefined,
    disconnectedSince: state?.connection ? undefined : state?.disconnectedSince,
    problem: state?.problem ?? state?.health?.problem ?? state?.statusReport?.problem ?? reportProblem,
    unhealthy: state?.health?.unhealthy ?? [],
    claims: records.map(({ namespace, name, uid, state: of, devices, pods, updatedAt }) => ({
      namespace,
      name,
      uid,
      state: of,
      pods: pods.map((pod) => `${namespace}/${pod.name}`),
      updatedAt,
      devices: devices.map(({ pool, device }) => `${pool}/${device}`),
    })),
  };
}
