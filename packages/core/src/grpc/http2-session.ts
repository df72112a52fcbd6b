import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type Settings,
} from "node:http2";
import { connect } from "node:net";
import { SampledFrames } from "./sampled-frames.ts";

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
  // With `onread`, `pause` stops reads from the kernel. node:http2 receives the data itself; the buffer is never used.
  const socket = connect({ path, onread: { buffer: new Uint8Array(1), callback: () => true } });
  // The host name sets :authority. Servers reject one that is empty or looks like a path.
  const session = connectHttp2("http://localhost", {
    createConnection: () => socket,
    settings: { enablePush: false, ...settings },
    ...(maxSessionMegabytes === undefined ? {} : { maxSessionMemory: maxSessionMegabytes }),
  });
  const frames = new SampledFrames(session, socket);
  const window = settings.initialWindowSize ?? constants.DEFAULT_SETTINGS_INITIAL_WINDOW_SIZE;
  const request = session.request.bind(session);
  session.request = (...args) => countData(request(...args), frames, window);
  return session;
}

// node:http2 calls `push` for each DATA frame that is not empty, also while the stream is paused.
function countData(stream: ClientHttp2Stream, frames: SampledFrames, window: number): ClientHttp2Stream {
  const push = stream.push.bind(stream);
  stream.push = (chunk: Buffer | null) => {
    if (chunk) frames.addData(chunk.length);
    return push(chunk);
  };
  const close = stream.close.bind(stream);
  stream.close = (...args) => {
    // node:http2 discards what the server sends before it learns of this: at most the window.
    frames.addDiscarded(window);
    close(...args);
  };
  return stream;
}
