import { ClientError, Status } from "nice-grpc";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { MessageAssembly } from "./message-assembly.ts";
import { MessageBuffers } from "./message-buffers.ts";
import { RawConnection } from "./raw-connection.ts";

// Flow control windows. With HTTP/2's default of 64 KiB, a message of one megabyte takes twenty round trips.
const STREAM_WINDOW = 4 * 1024 * 1024;
const SESSION_WINDOW = 8 * 1024 * 1024;

/**
 * Calls a server-streaming gRPC method over a unix socket and yields the encoded messages. Returns when the server ends
 * the stream with OK. Otherwise throws a NodekeeperError (see `fromGrpcError`), or the signal's reason if it aborts.
 * @param path absolute, at most 107 bytes; otherwise throws `invalid`
 * @param method "package.Service/Method"
 * @param options `buffers` provides memory for messages; callers return it after reading
 */
export async function* streamMessages(
  path: string,
  method: string,
  request: Uint8Array,
  { maxReceiveBytes, buffers = new MessageBuffers() }: DialOptions & { buffers?: MessageBuffers },
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  signal.throwIfAborted();
  using connection = new RawConnection(path, {
    streamWindowBytes: STREAM_WINDOW,
    sessionWindowBytes: SESSION_WINDOW,
  });
  try {
    using call = connection.call(method, [request]);
    yield* messagesOf(call.chunks(signal), method, maxReceiveBytes, buffers);
  } catch (error) {
    signal.throwIfAborted();
    throw fromGrpcError(error);
  }
}

async function* messagesOf(
  chunks: AsyncIterable<Buffer>,
  method: string,
  maxReceiveBytes: number,
  buffers: MessageBuffers,
): AsyncGenerator<Buffer> {
  const assembly = new MessageAssembly(buffers, (isCompressed, length) => {
    if (isCompressed) throw new ClientError(method, Status.INTERNAL, "a message is compressed");
    if (length <= maxReceiveBytes) return;
    const details = `a message of ${length} bytes is larger than ${maxReceiveBytes} bytes`;
    throw new ClientError(method, Status.RESOURCE_EXHAUSTED, details);
  });
  for await (const chunk of chunks) yield* assembly.add(chunk);
  if (assembly.isPartial)
    throw new ClientError(method, Status.INTERNAL, "the stream ended in the middle of a message");
}
