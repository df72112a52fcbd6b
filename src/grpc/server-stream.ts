import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { ClientError, Status } from "nice-grpc";
import { checkSocketPath } from "../lib/index.ts";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { UnaryAnswer } from "./unary-answer.ts";

const HEADER_BYTES = 5;
// What the other side may send before it hears that it was read: with HTTP/2's 64 KB, a message of a megabyte takes
// twenty round trips.
const STREAM_WINDOW = 4 * 1024 * 1024;
const SESSION_WINDOW = 8 * 1024 * 1024;

/**
 * One server-streaming gRPC call over a unix socket, message by message as bytes. Returns when the server ends the
 * stream well; throws a NodekeeperError as of `fromGrpcError` otherwise, and the signal's reason when it aborts.
 * @param path absolute, at most 107 bytes; otherwise throws `invalid`
 * @param method "package.Service/Method"
 */
export async function* streamMessages(
  path: string,
  method: string,
  request: Uint8Array,
  { maxReceiveBytes }: DialOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  checkSocketPath(path);
  signal.throwIfAborted();
  const session = openSession(path);
  let broken: unknown;
  session.on("error", (error) => {
    broken ??= error;
  });
  const stream = session.request({
    ":method": "POST",
    ":path": `/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
  });
  const onAbort = () => session.destroy();
  signal.addEventListener("abort", onAbort, { once: true });
  const status = new UnaryAnswer(0);
  stream.on("response", (headers) => status.takeHeaders(headers));
  stream.on("trailers", (trailers) => status.takeTrailers(trailers));
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(request.length, 1);
  stream.end(Buffer.concat([header, request]));
  try {
    yield* messagesOf(stream, method, maxReceiveBytes);
  } catch (error) {
    broken ??= error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    if (!stream.destroyed) stream.close(constants.NGHTTP2_CANCEL);
    session.destroy();
  }
  signal.throwIfAborted();
  if (broken instanceof ClientError) throw fromGrpcError(broken);
  const failure = status.failure(method, broken);
  if (failure) throw fromGrpcError(failure);
}

async function* messagesOf(
  chunks: AsyncIterable<Buffer>,
  method: string,
  maxReceiveBytes: number,
): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let held = 0;
  let needed = HEADER_BYTES;
  for await (const chunk of chunks) {
    parts.push(chunk);
    held += chunk.length;
    while (held >= needed) {
      const all = parts.length === 1 ? parts[0]! : Buffer.concat(parts, held);
      const length = all.readUInt32BE(1);
      if (all[0] !== 0) throw new ClientError(method, Status.INTERNAL, "a message is compressed");
      if (length > maxReceiveBytes) {
        const details = `a message of ${length} bytes is larger than ${maxReceiveBytes} bytes`;
        throw new ClientError(method, Status.RESOURCE_EXHAUSTED, details);
      }
      needed = HEADER_BYTES + length;
      parts = [all];
      if (held < needed) break;
      yield all.subarray(HEADER_BYTES, needed);
      const rest = all.subarray(needed);
      parts = rest.length > 0 ? [rest] : [];
      held = rest.length;
      needed = HEADER_BYTES;
    }
  }
  if (held > 0) throw new ClientError(method, Status.INTERNAL, "the stream ended in the middle of a message");
}

function openSession(path: string): ClientHttp2Session {
  // The name is for the :authority: servers refuse an empty or path-like one.
  const session = connectHttp2("http://localhost", {
    createConnection: () => connect(path),
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
  });
  session.once("connect", () => {
    if (!session.destroyed) session.setLocalWindowSize(SESSION_WINDOW);
  });
  return session;
}
