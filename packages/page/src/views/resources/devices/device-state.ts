import type { ApiAnswers } from "@nodekeeper/api/openapi";

export type Driver = ApiAnswers["devices"][number];
export type DriverClaims = ApiAnswers["claims"][number];
export type Device = ApiAnswers["devices/list"]["items"][number];

/** Most severe first. */
export const deviceStates = ["quarantined", "unhealthy", "tainted", "held", "free", "reported"] as const;
/** `reported`: the agent does not prepare the driver's claims, so it is unknown whether the device is held or free. */
export type DeviceState = (typeof deviceStates)[number];

/** The mark shown in addition to the color. */
export const stateMarks: Record<DeviceState, string> = {
  quarantined: "⊘",
  unhealthy: "✕",
  tainted: "△",
  held: "●",
  free: "○",
  reported: "◇",
};

/** A device in the grid. */
export interface GridDevice {
  /** "<pool>/<device>" */
  key: string;
  pool: string;
  name: string;
  state: DeviceState;
  /** Undefined for a quarantined device, which is not published. */
  device?: Device;
  /** Why it is quarantined. */
  problem?: string;
}

/**
 * Returns the devices of a driver for its grid: those of one page, in the API's order, with quarantined devices first.
 * @param claims undefined if unknown, or if the agent prepares none
 */
export function gridDevices(
  driver: Pick<Driver, "problems">,
  devices: readonly Device[],
  claims: Pick<DriverClaims, "kubelet"> | undefined,
): GridDevice[] {
  const unheld = ["registered", "waiting"].includes(claims?.kubelet ?? "") ? "free" : "reported";
  const quarantined = new Map<string, GridDevice>();
  const published = new Set(devices.map(keyOf));
  for (const { pool, device: name, field, message } of driver.problems) {
    const key = `${pool}/${name}`;
    // A device may be published although a part of it was refused.
    if (name === undefined || published.has(key)) continue;
    const problem = [quarantined.get(key)?.problem, field ? `${field}: ${message}` : message];
    quarantined.set(key, {
      key,
      pool,
      name,
      state: "quarantined",
      problem: problem.filter(Boolean).join("; "),
    });
  }
  return [
    ...quarantined.values(),
    ...devices.map((device) => ({
      key: keyOf(device),
      pool: device.pool,
      name: device.name,
      state: stateOf(device, unheld),
      device,
    })),
  ];
}

/** Returns the number of devices by state, without empty states. */
export function countStates(devices: readonly GridDevice[]): { state: DeviceState; count: number }[] {
  return deviceStates
    .map((state) => ({ state, count: devices.filter((device) => device.state === state).length }))
    .filter(({ count }) => count > 0);
}

function keyOf({ pool, name }: Pick<Device, "pool" | "name">): string {
  return `${pool}/${name}`;
}

function stateOf({ unhealthy, taints, claims }: Device, unheld: DeviceState): DeviceState {
  if (unhealthy !== undefined) return "unhealthy";
  if (taints.length > 0) return "tainted";
  return claims.length > 0 ? "held" : unheld;
}
