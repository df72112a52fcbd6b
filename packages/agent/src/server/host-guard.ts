import type { IncomingHttpHeaders } from "node:http";
import { isLoopback } from "@nodekeeper/core/lib";

/**
 * Whether a request comes from a page of another origin, including another port of the same host. A browser does not
 * let such a page read the response, but serving it costs the agent work. Links from other pages are allowed; forms are
 * refused. Sources: https://www.w3.org/TR/fetch-metadata/, RFC 6454 (Origin).
 */
export function isCrossSite(headers: IncomingHttpHeaders, method = "GET"): boolean {
  const { host, origin, "sec-fetch-site": site } = headers;
  if (site === undefined) return origin !== undefined && origin.replace(/^https?:\/\//, "") !== host;
  if (site === "same-origin" || site === "none") return false;
  if (method === "POST") return true;
  return headers["sec-fetch-mode"] !== "navigate" || headers["sec-fetch-dest"] !== "document";
}

/**
 * Whether a request with this Host header may be served. A web page can point its own name at 127.0.0.1 (DNS rebinding)
 * and thus read a loopback server as same-origin; its requests still carry the page's name. A server that is not bound
 * to loopback is reached by names that are not known here, so it serves any host.
 * @param header absent in HTTP/1.0, which no browser speaks
 */
export function isHostAllowed(
  header: string | undefined,
  configuredHost: string,
  boundHost: string,
): boolean {
  if (header === undefined || !isLoopback(boundHost)) return true;
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(header);
  const host = (match?.[1] ?? match?.[2] ?? "").toLowerCase();
  return host !== "" && (isLoopback(host) || host === configuredHost.toLowerCase());
}
