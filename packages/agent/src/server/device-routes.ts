import { NodekeeperError, rawNumber } from "@nodekeeper/core/lib";
import type { DriverClaims } from "../claims/index.ts";
import {
  type DeviceSync,
  type DriverStatus,
  departedDriver,
  type PublishedDevice,
} from "../devices/index.ts";
import type { JsonRoute } from "./api.ts";
import { apiRoute, pageAfter } from "./api-route.ts";

/** The routes of the JSON API for drivers, their devices, and the claims that hold the devices. */
export function deviceRoutes(
  sync: Pick<DeviceSync, "status" | "devicesOf">,
  claims: () => readonly DriverClaims[],
): JsonRoute[] {
  const drivers = () => withDeparted(sync.status(), claims());
  return [
    apiRoute("devices", drivers),
    apiRoute("claims", () => claims()),
    apiRoute("devices/list", ({ driver, limit, continue: after = "" }) => {
      if (!drivers().some(({ name }) => name === driver))
        throw new NodekeeperError("notFound", `no driver ${driver}; /api/v1/devices lists them`);
      const devices = sync.devicesOf(driver).map((each) => ({ ...each, key: keyOf(each) }));
      const { page, next } = pageAfter(devices, after, limit);
      const held = new Holders(claims().find((each) => each.driver === driver));
      return { items: page.map(({ key, ...each }) => ({ ...shown(each), ...held.of(key) })), ...next };
    }),
  ];
}

/** Adds drivers that are no longer known but still have claims. Sorted by name. */
function withDeparted(drivers: readonly DriverStatus[], claims: readonly DriverClaims[]): DriverStatus[] {
  const departed = claims.flatMap((each) =>
    each.claims.length === 0 || drivers.some(({ name }) => name === each.driver)
      ? []
      : [departedDriver(each.driver, each.disconnectedSince ?? 0, departedText(each))],
  );
  return [...drivers, ...departed].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function departedText({ kubelet, claims }: DriverClaims): string {
  const text = "the driver is not registered with Nodekeeper, and none of its devices are published";
  if (kubelet === "ownPlugin")
    return `${text}; it has its own plugin for the kubelet, and the records and CDI files of its claims stay until the claims end`;
  const held = claims.filter(({ state }) => state !== "unprepared").length;
  const left = claims.length - held;
  return [
    text,
    ...(held > 0 ? [`claims that still have devices of it: ${held}`] : []),
    ...(left > 0 ? [`claims that ended and that it unprepares when it registers again: ${left}`] : []),
  ].join("; ");
}

function keyOf({ pool, device }: PublishedDevice): string {
  return `${pool}/${device.name}`;
}

function shown({ pool, device: { name, attributes = {}, taints = [] }, slices }: PublishedDevice) {
  return {
    pool,
    name,
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [key, valueText(Object.values(value)[0])]),
    ),
    taints: taints.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ""}:${effect}`),
    slices,
  };
}

function valueText(value: unknown): string {
  return (
    JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawNumber(String(each)) : each)) ?? ""
  );
}

/** The claims that hold each device of a driver, and why the device is unhealthy. */
class Holders {
  readonly #claims = new Map<string, string[]>();
  readonly #unhealthy = new Map<string, string>();

  constructor(driver: DriverClaims | undefined) {
    for (const { namespace, name, devices } of driver?.claims ?? []) {
      for (const device of devices)
        this.#claims.set(device, [...(this.#claims.get(device) ?? []), `${namespace}/${name}`]);
    }
    for (const { pool, device, message } of driver?.unhealthy ?? [])
      this.#unhealthy.set(`${pool}/${device}`, message);
  }

  of(key: string): { claims: string[]; unhealthy?: string } {
    const unhealthy = this.#unhealthy.get(key);
    return { claims: this.#claims.get(key) ?? [], ...(unhealthy === undefined ? {} : { unhealthy }) };
  }
}
