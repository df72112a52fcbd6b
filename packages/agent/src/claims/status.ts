import type { ClaimRecord } from "./claim-records.ts";
import type { DeviceHealth } from "./driver-health.ts";
import type { DriverState } from "./driver-state.ts";

/** A claim's devices of one driver as `nodekeeper devices` shows them. */
export interface ClaimStatus {
  namespace: string;
  name: string;
  uid: string;
  state: ClaimRecord["state"];
  /** "<namespace>/<name>" of the pods it is reserved for; undefined where it was not read since the agent's start. */
  pods: readonly string[] | undefined;
  /** `<pool>/<device>`. */
  devices: string[];
  /** Wall milliseconds. */
  updatedAt: number;
}

/** How the agent stands with the kubelet for one driver, and the driver's claims. */
export interface DriverClaims {
  driver: string;
  /** `ownPlugin`: the driver registers with the kubelet by itself; `none`: the agent is not its plugin (yet). */
  kubelet: "waiting" | "registered" | "refused" | "ownPlugin" | "none";
  /** Why the kubelet refused. */
  reason: string | undefined;
  /** Whether the driver is connected, and prepares devices. */
  isPreparing: boolean;
  /** Errors about what was left from before, or about the report of health. */
  problem: string | undefined;
  unhealthy: DeviceHealth[];
  claims: ClaimStatus[];
}

/** @param state undefined where only records are left of the driver */
export function driverClaims(
  driver: string,
  state: DriverState | undefined,
  records: readonly ClaimRecord[],
  podsOf: (uid: string) => readonly string[] | undefined,
): DriverClaims {
  const registration = state?.plugin?.registration;
  return {
    driver,
    kubelet: state?.isLeftAlone ? "ownPlugin" : (registration?.state ?? "none"),
    reason: registration?.state === "refused" ? registration.reason : undefined,
    isPreparing: state?.connection?.client !== undefined,
    problem: state?.problem ?? state?.health?.problem,
    unhealthy: state?.health?.unhealthy ?? [],
    claims: records.map(({ namespace, name, uid, state: of, devices, updatedAt }) => ({
      namespace,
      name,
      uid,
      state: of,
      pods: podsOf(uid),
      updatedAt,
      devices: devices.map(({ pool, device }) => `${pool}/${device}`),
    })),
  };
}
