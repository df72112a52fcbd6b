import { Channel, ChannelCredentials } from "@grpc/grpc-js";
import { RetryInfo, Status as RpcStatus } from "@nodekeeper/core/gen/google/rpc/status.ts";
import { LogsServiceDefinition } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { TraceServiceDefinition } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import { messageOf } from "@nodekeeper/core/lib";
import { ClientError, createClient, Metadata, type MethodDefinition, Status } from "nice-grpc";
import { type Access, readAccess } from "./access-files.ts";
import { type Delivery, type OtlpRequest, shortened, type Transport } from "./delivery.ts";
import type { TransportOptions } from "./http-transport.ts";
import { acceptedBy } from "./responses.ts";

// grpc.compression_algorithm of the gRPC library.
const IDENTITY = 0;
const GZIP = 2;
const MOST_ANSWER_BYTES = 64 * 1024;
const RETRY_INFO = "google.rpc.RetryInfo";
// Retryable status codes of OTLP: https://opentelemetry.io/docs/specs/otlp/#failures. RESOURCE_EXHAUSTED is handled
// separately.
const unavailable: ReadonlySet<Status> = new Set([
  Status.CANCELLED,
  Status.DEADLINE_EXCEEDED,
  Status.ABORTED,
  Status.OUT_OF_RANGE,
  Status.UNAVAILABLE,
  Status.DATA_LOSS,
]);
const refused: ReadonlySet<Status> = new Set([Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION]);

/**
 * gRPC keepalive, in milliseconds. The first request after `timeMs` pings the server. The connection is closed if there
 * is no response within `timeoutMs`.
 */
export interface Keepalive {
  timeMs: number;
  timeoutMs: number;
}

// A connection that was dropped silently, for example by a load balancer, must fail at most one request. Pings are sent
// only with requests, because servers treat pings without a request in between as abuse.
const KEEPALIVE: Keepalive = { timeMs: 30_000, timeoutMs: 5_000 };

const services = { logs: exportOf(LogsServiceDefinition), traces: exportOf(TraceServiceDefinition) };

/** OTLP over gRPC. */
export class GrpcTransport implements Transport {
  readonly #options: TransportOptions;
  readonly #keepalive: Keepalive;
  #channel: Channel | undefined;
  #ca: string | undefined;

  constructor(options: TransportOptions, keepalive = KEEPALIVE) {
    this.#options = options;
    this.#keepalive = keepalive;
  }

  async send(request: OtlpRequest, signal: AbortSignal): Promise<Delivery> {
    let retryAfterMs: number | undefined;
    try {
      const access = await readAccess(this.#options);
      const options = {
        metadata: Metadata(access.headers),
        signal,
        onTrailer: (trailer: Metadata) => {
          retryAfterMs = retryDelayOf(trailer);
        },
      };
      const client = createClient(services[request.signal], this.#channelFor(access));
      return acceptedBy(await client.export(request.body, options), request.signal);
    } catch (error) {
      signal.throwIfAborted();
      return deliveryOf(error, retryAfterMs);
    }
  }

  #channelFor({ ca }: Access): Channel {
    if (this.#channel && ca === this.#ca) return this.#channel;
    this.#channel?.close();
    this.#ca = ca;
    const { endpoint, compression, userAgent } = this.#options;
    const { protocol, hostname, port } = new URL(endpoint);
    const isSecure = protocol === "https:";
    const credentials = isSecure
      ? ChannelCredentials.createSsl(ca === undefined ? null : Buffer.from(ca))
      : ChannelCredentials.createInsecure();
    this.#channel = new Channel(`dns:${hostname}:${port || (isSecure ? 443 : 80)}`, credentials, {
      "grpc.primary_user_agent": userAgent,
      "grpc.max_receive_message_length": MOST_ANSWER_BYTES,
      "grpc.keepalive_time_ms": this.#keepalive.timeMs,
      "grpc.keepalive_timeout_ms": this.#keepalive.timeoutMs,
      "grpc.enable_channelz": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.default_compression_algorithm": compression === "gzip" ? GZIP : IDENTITY,
    });
    return this.#channel;
  }

  [Symbol.dispose](): void {
    this.#channel?.close();
  }
}

type Bytes = MethodDefinition<Uint8Array, Uint8Array, Uint8Array, Uint8Array, false, false>;

// Messages are encoded and decoded by the callers.
function exportOf({ fullName }: { fullName: string }): { export: Bytes } {
  const same = (bytes: Uint8Array) => bytes;
  return {
    export: {
      ...{ path: `/${fullName}/Export`, requestStream: false, responseStream: false, options: {} },
      ...{ requestSerialize: same, requestDeserialize: same },
      ...{ responseSerialize: same, responseDeserialize: same },
    },
  };
}

// Error texts of grpc-go, grpc-java and grpc-js for a message that exceeds the receiver's limit.
const tooLarge = /larger than|exceeds maximum|too large/i;

function deliveryOf(error: unknown, retryAfterMs: number | undefined): Delivery {
  if (!(error instanceof ClientError))
    return { kind: "unavailable", message: shortened(messageOf(error)), retryAfterMs: 0 };
  const { code, details } = error;
  const message = shortened(`${Status[code]}: ${details}`);
  if (unavailable.has(code)) return { kind: "unavailable", message, retryAfterMs: retryAfterMs ?? 0 };
  // Either a rate limit or a message that is too large. Some gateways send no delay with a rate limit, so only the text
  // distinguishes them.
  if (code === Status.RESOURCE_EXHAUSTED)
    return retryAfterMs === undefined && tooLarge.test(details)
      ? { kind: "tooLarge", message }
      : { kind: "unavailable", message, retryAfterMs: retryAfterMs ?? 0 };
  if (code === Status.UNIMPLEMENTED) return { kind: "unsupported", message };
  return { kind: refused.has(code) ? "refused" : "denied", message };
}

// Returns the delay that the receiver requested by RetryInfo, in milliseconds. Undefined if it requested none or the
// details can't be decoded.
function retryDelayOf(trailer: Metadata): number | undefined {
  const bytes = trailer.get("grpc-status-details-bin");
  if (!(bytes instanceof Uint8Array)) return undefined;
  try {
    const info = RpcStatus.decode(bytes).details.find(({ typeUrl }) => typeUrl.endsWith(RETRY_INFO));
    if (info === undefined) return undefined;
    const { seconds = 0n, nanos = 0 } = RetryInfo.decode(info.value).retryDelay ?? {};
    return Number(seconds) * 1_000 + nanos / 1e6;
  } catch {
    return undefined;
  }
}
