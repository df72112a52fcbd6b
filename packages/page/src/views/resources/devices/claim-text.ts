import type { Row } from "../../../export/exports.ts";
import { shown } from "../../../text.ts";
import type { DriverClaims, GridDevice } from "./device-state.ts";

export type Claim = DriverClaims["claims"][number];

/** The claims that hold each device, by "<pool>/<device>", as known to the agent. */
export type Holders = ReadonlyMap<string, readonly Claim[]>;

/** Computed once for all devices, because each may be held and rendered many times. */
export function holdersOf(claims: readonly Claim[]): Holders {
  const holders = new Map<string, Claim[]>();
  for (const claim of claims)
    for (const key of new Set(claim.devices)) {
      const found = holders.get(key);
      if (found) found.push(claim);
      else holders.set(key, [claim]);
    }
  return holders;
}

/** "claim default/train for pod default/train-0"; the pod only if it is known. */
export function claimText({
  namespace,
  name,
  pods = [],
}: Pick<Claim, "namespace" | "name" | "pods">): string {
  const of =
    pods.length > 0
      ? ` for ${pods.length === 1 ? "pod" : "pods"} ${pods.map((pod) => shown(pod)).join(", ")}`
      : "";
  return `claim ${shown(namespace)}/${shown(name)}${of}`;
}

/** Formats a device in one line: state, reason, and holders. */
export function deviceText(device: GridDevice, holders: Holders): string {
  const held = (holders.get(device.key) ?? []).map((claim) => `held by ${claimText(claim)}`);
  return (device.state === "held" && held.length > 0 ? held : [reasonOf(device), ...held]).join("; ");
}

function reasonOf({ state, device, problem }: GridDevice): string {
  switch (state) {
    case "quarantined":
      return `quarantined, not published: ${shown(problem ?? "", 1_000)}`;
    case "unhealthy":
      return device?.unhealthy ? `unhealthy: ${shown(device.unhealthy, 1_000)}` : "unhealthy";
    case "tainted":
      return `tainted ${device!.taints.map((taint) => shown(taint)).join(", ")}`;
    case "reported":
      return "reported; whether a claim holds it is not known";
    default:
      return state;
  }
}

/** Returns a device as a row of an export. */
export function rowOfDevice(device: GridDevice, holders: Holders): Row {
  const claims = holders.get(device.key) ?? [];
  return {
    Pool: shown(device.pool),
    Device: shown(device.name),
    State: device.state,
    About: deviceText(device, holders),
    Claims: claims.map(({ namespace, name }) => `${shown(namespace)}/${shown(name)}`),
    Pods: claims.flatMap(({ pods = [] }) => pods.map((pod) => shown(pod))),
    ResourceSlices: (device.device?.slices ?? []).map((slice) => shown(slice)),
    Attributes: Object.entries(device.device?.attributes ?? {}).map(
      ([name, value]) => `${shown(name)}=${shown(value, 300)}`,
    ),
  };
}
