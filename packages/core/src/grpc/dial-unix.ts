import type { Socket } from "node:net";
import { CallCredentials, Channel, ChannelCredentials, credentials } from "@grpc/grpc-js";
import { checkSocketPath, PacedSocket } from "../lib/index.ts";
import { FramePace } from "./frame-pace.ts";

export interface DialOptions {
  /** Maximum size of a received message, in bytes. A larger one fails the call with RESOURCE_EXHAUSTED. */
  maxReceiveBytes: number;
}

export interface DialUnixOptions extends DialOptions {
  /**
   * Whether the number of the server's frames is unlimited, as for the agent's clients and for its container runtime.
   * Only then does an idle channel that was not closed let the process exit. Default false.
   */
  isTrusted?: boolean;
}

/**
 * Creates a gRPC channel to a unix socket, for nice-grpc's `createClient`. Connects on the first call. The caller must
 * close the channel and give every call a deadline, because a server may accept and never respond. If the server
 * exceeds the frame budget (`FrameBudget`), the connection is closed and the call fails with that reason.
 * @param path absolute, at most 107 bytes; otherwise throws `invalid`
 */
export function dialUnix(path: string, options: DialUnixOptions): Channel {
  checkSocketPath(path);
  return new Channel(
    `unix:${path}`,
    options.isTrusted ? credentials.createInsecure() : new BoundedCredentials(),
    {
      // A pool shared by path would return a connection to a socket that has since been replaced.
      "grpc.use_local_subchannel_pool": 1,
      // Servers reject an :authority that is empty or looks like a path.
      "grpc.default_authority": "localhost",
      "grpc.enable_http_proxy": 0,
      // Channelz takes a third of a channel's memory and is not used.
      "grpc.enable_channelz": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.initial_reconnect_backoff_ms": 200,
      "grpc.max_reconnect_backoff_ms": 2_000,
      "grpc.max_receive_message_length": options.maxReceiveBytes,
    },
  );
}

/** Insecure credentials. The gRPC library's hook for placing a layer between the socket and HTTP/2. */
class BoundedCredentials extends ChannelCredentials {
  _isSecure(): boolean {
    return false;
  }

  _equals(other: ChannelCredentials): boolean {
    return other instanceof BoundedCredentials;
  }

  _createSecureConnector() {
    return {
      connect: async (socket: Socket) => {
        // The gRPC library and node:http2 use only the methods of Duplex.
        const bounded = new PacedSocket(socket, new FramePace()) as unknown as Socket;
        return { socket: bounded, secure: false };
      },
      waitForReady: async () => {},
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy: () => {},
    };
  }
}
