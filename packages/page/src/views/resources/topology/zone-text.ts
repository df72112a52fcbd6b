import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Row } from "../../../export/exports.ts";
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

/** Returns zones as rows of an export: one for each resource of a zone, or one if it has none. */
export function rowsOfZones(
  zones: readonly Zone[],
  unhealthy: ReadonlyMap<string, string>,
  parent = "",
): Row[] {
  return zones.flatMap((zone) => {
    const { type, name, resources, attributes, holders, children } = zone;
    const place = [parent, `${typeText(shown(type, 60))} ${shown(name)}`].filter(Boolean).join(" / ");
    const shared = {
      Zone: place,
      "Held by": holders.map((holder) =>
        shown(`${holder.namespace}/${holder.name}: ${holdsText(holder)}`, 1_000),
      ),
      Attributes: attributes.map((each) => shown(`${each.name}=${each.value}`, 500)),
      Unhealthy: isDevice(zone) ? shown(unhealthy.get(name) ?? "") || null : null,
    };
    const amounts = isDevice(zone) ? [] : resources;
    return [
      ...(amounts.length === 0 ? [shared] : []),
      ...amounts.map((resource) => ({
        ...shared,
        Resource: shown(resource.name, 120),
        Capacity: resource.capacity ?? null,
        Allocatable: resource.allocatable ?? null,
        Held: resource.held,
      })),
      ...rowsOfZones(children, unhealthy, place),
    ];
  });
}
