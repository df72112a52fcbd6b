import { isIP, isIPv6 } from "node:net";
import type { AllocatedDevice } from "@nodekeeper/sdk";
import type { Link } from "./interfaces.ts";

/** The opaque configuration of a device, in the format of DRANET. */
export interface NetworkConfiguration {
  /** In the pod. */
  name: string;
  /** In CIDR notation. */
  addresses: string[];
  mtu?: number;
  routes: { destination: string; gateway?: string }[];
}

const MOST = 16;

/**
 * Returns the configuration that applies to a device. Fields of the claim take precedence over those of the class.
 * Throws if a field is invalid. The message appears in the pod's Events.
 */
export function configurationOf(
  { device, configuration }: Pick<AllocatedDevice, "device" | "configuration">,
  hostName: string,
  limits: Pick<Link, "min_mtu" | "max_mtu"> = {},
): NetworkConfiguration {
  const all = configuration.map(({ parameters }) => object(parameters, "the configuration"));
  const merged: Record<string, unknown> = Object.assign(
    {},
    ...all.map((each) => object(each.interface ?? {}, "interface")),
  );
  const { name = hostName, addresses = [], mtu } = merged;
  const routes = all.findLast((each) => each.routes !== undefined)?.routes ?? [];
  const fail = (field: string, value: unknown, rule: string) => {
    const text = JSON.stringify(value, (_, each) => (typeof each === "bigint" ? String(each) : each));
    throw new Error(`device ${device}: ${field}: ${text?.slice(0, 100)} ${rule}`);
  };
  if (typeof name !== "string" || !/^[^\s/:]{1,15}$/.test(name) || [".", "..", "lo"].includes(name))
    fail("interface.name", name, "is not the name of a network interface");
  for (const address of list(addresses, "interface.addresses"))
    if (!isCidr(address))
      fail("interface.addresses", address, "is not an address with the length of its prefix");
  const { min_mtu: least = 68, max_mtu: most = 65_535 } = limits;
  if (
    mtu !== undefined &&
    !(Number.isInteger(mtu) && Number(mtu) >= least && Number(mtu) <= (most || 65_535))
  )
    fail("interface.mtu", mtu, `is not within ${least} to ${most || 65_535}`);
  const checkedRoutes = list(routes, "routes").map((route) => {
    const { destination, gateway } = object(route, "routes");
    if (!isCidr(destination)) fail("routes.destination", destination, "is not a network in CIDR notation");
    if (gateway !== undefined && !isIP(String(gateway)))
      fail("routes.gateway", gateway, "is not an IP address");
    return { destination, gateway } as { destination: string; gateway?: string };
  });
  return {
    name: name as string,
    addresses: addresses as string[],
    ...(mtu === undefined ? {} : { mtu: mtu as number }),
    routes: checkedRoutes,
  };
}

function object(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new Error(`${what} is not a JSON object`);
}

function list(value: unknown, what: string): unknown[] {
  if (Array.isArray(value) && value.length <= MOST) return value;
  throw new Error(`${what} is not a list of at most ${MOST} entries`);
}

function isCidr(value: unknown): value is string {
  const [address = "", length = "", ...rest] = String(value).split("/");
  const most = isIPv6(address) ? 128 : 32;
  return (
    isIP(address) > 0 &&
    !address.includes("%") &&
    /^\d{1,3}$/.test(length) &&
    Number(length) <= most &&
    rest.length === 0
  );
}
