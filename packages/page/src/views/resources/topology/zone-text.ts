import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { amountText } from "../../../parts/kube-quantity.ts";
import { shown } from "../../../text.ts";
import type { Holder, Zone } from "./zones.ts";

const types: Record<string, string> = {
  Numa: "NUMA node",
  L3CacheGroup: "L3 cache",
  DRADevice: "Device",
};

/** Returns a zone type in words. */
export function typeText(type: string): string {
  return types[type] ?? type;
}

/** Whether a zone is a device instead of a part of the machine that has CPUs and memory. */
export function isDevice({ type }: Pick<Zone, "type">): boolean {
  return type !== "Socket" && type !== "Numa" && type !== "L3CacheGroup";
}

/**
 * Returns the last part of the device name "<driver>/<pool>/<device>" in a claim. Other names are returned unchanged.
 */
export function shortName(name: string): string {
  const parts = name.split("/");
  return parts.length === 3 ? parts[2]! : name;
}

/** Returns the problems of devices in claims, by zone name: "<driver>/<pool>/<device>". */
export function unhealthyDevices(claims: ApiAnswers["claims"]): ReadonlyMap<string, string> {
  return new Map(
    claims.flatMap(({ driver, unhealthy }) =>
      unhealthy.map(({ pool, device, message }) => [`${driver}/${pool}/${device}`, message] as const),
    ),
  );
}

/** "cpu 2, memory 4 GiB" */
export function holdsText({ holds }: Pick<Holder, "holds">): string {
  return holds
    .map(({ resource, amount, text }) => {
      const shownAmount = amount === undefined ? shown(text, 60) : amountText(resource, amount);
      return `${shown(resource, 120)} ${shownAmount}`;
    })
    .join(", ");
}
