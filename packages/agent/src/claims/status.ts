import type { ClaimRecord } from "./claim-records.ts";
import type { DeviceHealth } from "./driver-health.ts";
import type { DriverState } from "./driver-state.ts";

/** A claim's devices of one driver as `nodekeeper devices` shows them. */
export interface ClaimStatus {
  namespace: string;
  name: string;
  uid: string;
  state: ClaimRecord["state"];
  /**
   * Pods whose containers may use its devices, as "<namespace>/<name>"; undefined if an earlier version wrote the
   * record.
   */
  pods: readonly string[] | undefined;
  /** `<pool>/<device>`. */
  devices: string[];
  /** Wall milliseconds. */
  updatedAt: number;
}

/** The agent's registration with the kubelet for one driver, and the driver's claims. */
export interface DriverClaims {
  driver: string;
  /** `ownPlugin`: the driver registers with the kubelet itself; `none`: the agent is not its plugin (yet). */
  kubelet: "waiting" | "registered" | "refused" | "ownPlugin" | "none";
  /** Why the kubelet refused. */
  reason: string | undefined;
  /** Whether the driver is connected and prepares devices. */
  isPreparing: boolean;
  /** Wall milliseconds when it disconnected, the agent's start at the earliest; undefined if it is connected. */
  disconnectedSince: number | undefined;
  /** The error of the last reconciliation, or of the health stream. */
  problem: string | undefined;
  unhealthy: DeviceHealth[];
  claims: ClaimStatus[];
}

/**
 * Returns the status of a driver.
 * @param state undefined if only records are left of the driver
 */
export function driverClaims(
  driver: string,
  state: DriverState | undefined,
  records: readonly ClaimRecord[],
): DriverClaims {
  const registration = state?.plugin?.registration;
  return {
    driver,
    kubelet: state?.isLeftAlone ? "ownPlugin" : (registration?.state ?? "none"),
    reason: registration?.state === "refused" ? registration.reason : undefined,
    isPreparing: state?.connection?.client !== undefined,
    disconnectedSince: state?.connection ? undefined : state?.disconnectedSince,
    problem: state?.problem ?? state?.health?.problem,
    unhealthy: state?.health?.unhealthy ?? [],
    claims: records.map(({ namespace, name, uid, state: of, devices, pods, updatedAt }) => ({
      namespace,
      name,
      uid,
      state: of,
      pods: pods?.map((pod) => `${namespace}/${pod.name}`),
      updatedAt,
      devices: devices.map(({ pool, device }) => `${pool}/${device}`),
    })),
  };
}
