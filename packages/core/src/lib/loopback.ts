import { isIP } from "node:net";

/**
 * Whether a host is this machine and no other.
 * @param host a name or an IP address; an IPv6 address may be in brackets, as in a URL
 */
export function isLoopback(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return isIP(name) === 4 && name.startsWith("127.");
}
