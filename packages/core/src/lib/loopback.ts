import { isIP } from "node:net";

/**
 * Returns whether a host is a loopback name or address.
 * @param host a name or IP address; an IPv6 address may be in brackets, as in a URL
 */
export function isLoopback(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  return isIP(name) === 4 && name.startsWith("127.");
}
