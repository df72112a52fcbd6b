import { isLoopback } from "@nodekeeper/core/lib";

/**
 * Whether a request's Host header may be answered. A web page can point its own name at 127.0.0.1 (DNS rebinding) and
 * so read a loopback server as its own; its requests still carry the page's name.
 * A server bound to other addresses is reached by names that are not known here, and answers all.
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
