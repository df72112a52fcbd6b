import { ClientError, Status } from "nice-grpc";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { MessageAssembly } from "./message-assembly.ts";
import { MessageBuffers } from "./message-buffers.ts";
import type { RawCall } from "./raw-call.ts";
import { RawConnection } from "./raw-connection.ts";

// Flow control windows. With HTTP/2's default of 64 KiB, a message of one megabyte takes twenty round trips.
const STREAM_WINDOW = 4 * 1024 * 1024;
const SESSION_WINDOW = 8 * 1024 * 1024;

/** A call, with its encoded request. */
interface StreamRequest {
  /** "package.Service/Method" */
  method: string;
  request: Uint8Array;
}

/**
 * Calls a server-streaming gRPC method over a unix socket and yields the encoded messages. Returns when the server ends
 * the stream with OK. Otherwise throws a NodekeeperError (see `fromGrpcError`), or the signal's reason if it aborts.
 * @param path absolute, at most 107 bytes; otherwise throws `invalid`
 * @param options `buffers` provides memory for messages; callers return it after reading
 */
export async function* streamMessages(
  path: string,
  { method, request }: StreamRequest,
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
    yield* messagesOf(call, assemblyOf(method, maxReceiveBytes, buffers), method, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw fromGrpcError(error);
  }
}

function assemblyOf(method: string, maxReceiveBytes: number, buffers: MessageBuffers): MessageAssembly {
  return new MessageAssembly(buffers, (isCompressed, length) => {
    if (isCompressed) throw new ClientError(method, Status.INTERNAL, "a message is compressed");
    if (length <= maxReceiveBytes) return;
    const details = `a message of ${length} bytes is larger than ${maxReceiveBytes} bytes`;
    throw new ClientError(method, Status.RESOURCE_EXHAUSTED, details);
  });
}

// Not by iterating over the stream: an iterator concatenates the chunks that arrived meanwhile, which copies a large
// message once more into memory that only a full collection frees.
async function* messagesOf(
  call: RawCall,
  assembly: MessageAssembly,
  method: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let completed: { message: Buffer; others: Generator<Buffer> } | undefined;
  let isOver = false;
  let wake = () => {};
  const received = call.receive((chunk) => {
    const others = assembly.add(chunk);
    const first = others.next();
    if (first.done) return;
    completed = { message: first.value, others };
    // The next message is received after the consumer has taken this one.
    call.pause();
    wake();
  }, signal);
  const over = () => {
    isOver = true;
    wake();
  };
  received.then(over, over);
  while (completed || !isOver) {
    if (completed) {
      const { message, others } = completed;
      completed = undefined;
      yield message;
      yield* others;
      call.resume();
    } else
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  }
  await received;
  if (assembly.isPartial)
    throw new ClientError(method, Status.INTERNAL, "the stream ended in the middle of a message");
}
