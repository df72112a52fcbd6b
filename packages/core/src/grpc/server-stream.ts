import { ClientError, Status } from "nice-grpc";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { HEADER_BYTES } from "./raw-call.ts";
import { RawConnection } from "./raw-connection.ts";

// What the server may send before it hears that it was read: with HTTP/2's 64 KB, a message of a megabyte takes
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
  signal.throwIfAborted();
  using connection = new RawConnection(path, {
    streamWindowBytes: STREAM_WINDOW,
    sessionWindowBytes: SESSION_WINDOW,
  });
  try {
    using call = connection.call(method, [request]);
    yield* messagesOf(call.chunks(signal), method, maxReceiveBytes);
  } catch (error) {
    signal.throwIfAborted();
    throw fromGrpcError(error);
  }
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
