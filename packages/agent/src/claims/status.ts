import type { ClaimRecord } from "./claim-records.ts";
import type { DeviceHealth } from "./driver-health.ts";

/** A claim's devices of one driver as `nodekeeper devices` shows them. */
export interface ClaimStatus {
  namespace: string;
  name: string;
  uid: string;
  state: ClaimRecord["state"];
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
  /** What goes wrong with what was left from before, or with the report of health. */
  problem: string | undefined;
  unhealthy: DeviceHealth[];
  claims: ClaimStatus[];
}
