import { isIPv4, isIPv6 } from "node:net";

const cidr = /^([^/]+)\/(0|[1-9]\d{0,2})$/;
const mapped = /^::ffff:/;

/**
 * Returns the canonical form of an interface's address in CIDR notation, such as "192.0.2.5/24": IPv6 as in RFC 5952.
 * Returns undefined if the text is not an address, or an IPv4 address mapped to IPv6.
 */
export function canonicalInterfaceAddress(text: string): string | undefined {
  const [, address = "", length = ""] = cidr.exec(text) ?? [];
  if (isIPv4(address)) return Number(length) <= 32 ? `${address}/${length}` : undefined;
  if (!isIPv6(address) || address.includes("%") || Number(length) > 128) return undefined;
  const shortest = new URL(`http://[${address}]`).hostname.slice(1, -1);
  return mapped.test(shortest) ? undefined : `${shortest}/${length}`;
}
