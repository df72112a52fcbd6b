import { type ClientHttp2Session, connect as connectHttp2, type Settings } from "node:http2";
import { PacedSocket } from "../lib/index.ts";
import { FramePace } from "./frame-pace.ts";

export interface Http2SessionOptions {
  settings?: Settings;
  /** Limit of the session's memory, including data to send, in megabytes. Default: Node's 10. */
  maxSessionMegabytes?: number | undefined;
}

/**
 * Opens an HTTP/2 connection to a unix socket. If the server exceeds the frame budget (`FrameBudget`), the connection
 * is closed. The caller must handle its errors.
 */
export function openHttp2Session(
  path: string,
  { settings = {}, maxSessionMegabytes }: Http2SessionOptions = {},
): ClientHttp2Session {
  // The host name sets :authority. Servers reject one that is empty or looks like a path.
  return connectHttp2("http://localhost", {
    createConnection: () => PacedSocket.connect(path, new FramePace()),
    settings: { enablePush: false, ...settings },
    ...(maxSessionMegabytes === undefined ? {} : { maxSessionMemory: maxSessionMegabytes }),
  });
}
