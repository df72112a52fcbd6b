import { isIP } from "node:net";
import { StatusAddressInvalid } from "@nodekeeper/api/errors";

export interface ListenAddress {
  /** Host name or IP address, without brackets. */
  host: string;
  /** 0: the operating system chooses. */
  port: number;
}

/** Parses "127.0.0.1:10290", "[::1]:10290" or "localhost:0". Throws `invalid`. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (!host || port > 65_535 || (match?.[1] && isIP(host) !== 6)) {
    throw new StatusAddressInvalid({
      problem: `${JSON.stringify(text)} is not an address such as "127.0.0.1:10290"`,
    });
  }
  return { host, port };
}

/** Formats host and port as in a URL. */
export function formatAddress(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
