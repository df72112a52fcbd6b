import { Channel, credentials } from "@grpc/grpc-js";
import { checkSocketPath } from "../lib/index.ts";

export interface DialOptions {
  /** The largest message taken, bytes; a larger one fails the call with RESOURCE_EXHAUSTED. */
  maxReceiveBytes: number;
}

/**
 * A gRPC channel to a unix socket, for nice-grpc's `createClient`. It connects at the first call.
 * The caller closes it, and gives every call a deadline: a socket may accept and never speak.
 * @param path absolute, at most 107 bytes; otherwise throws `invalid`
 */
export function dialUnix(path: string, options: DialOptions): Channel {
  checkSocketPath(path);
  return new Channel(`unix:${path}`, credentials.createInsecure(), {
    // A pool shared by path would hand out the connection to a socket that has been replaced since.
    "grpc.use_local_subchannel_pool": 1,
    // Servers refuse an empty or path-like :authority.
    "grpc.default_authority": "localhost",
    "grpc.enable_http_proxy": 0,
    // Its traces cost a third of a channel's memory, and nothing reads them.
    "grpc.enable_channelz": 0,
    "grpc.service_config_disable_resolution": 1,
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2_000,
    "grpc.max_receive_message_length": options.maxReceiveBytes,
  });
}
