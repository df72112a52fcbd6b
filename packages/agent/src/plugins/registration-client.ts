import { type Channel, connectivityState } from "@grpc/grpc-js";
import { type PluginInfo, RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { dialUnix, fromGrpcError } from "@nodekeeper/core/grpc";
import { type Clock, NodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import { createClient } from "nice-grpc";

/** Timeouts of the registration handshake in milliseconds. */
export interface HandshakeTimeouts {
  dialMs: number;
  /** The kubelet's timeout of 1 s is too short for slow plugins (kubernetes/kubernetes#127457). */
  infoMs: number;
  noticeMs: number;
}

// PluginInfo is a few hundred bytes in practice.
const maxReceiveBytes = 64 * 1024;

/** A connection to a plugin's registration socket. Must be disposed of after the handshake. */
export class RegistrationClient implements Disposable {
  readonly #clock: Clock;
  readonly #timeouts: HandshakeTimeouts;
  readonly #channel: Channel;

  /** Throws `invalid` if the path cannot be dialed. */
  constructor(path: string, timeouts: HandshakeTimeouts, clock: Clock) {
    this.#clock = clock;
    this.#timeouts = timeouts;
    this.#channel = dialUnix(path, { maxReceiveBytes });
  }

  /** Connects and calls GetInfo. Throws `deadline`, `unavailable`, `unsupported` or `exhausted`. */
  async getInfo(signal: AbortSignal): Promise<PluginInfo> {
    await this.#connect(signal);
    return await this.#call("GetInfo", this.#timeouts.infoMs, signal, (client, callSignal) =>
      client.getInfo({}, { signal: callSignal }),
    );
  }

  /**
   * Calls NotifyRegistrationStatus.
   * @param refusal why the registration failed; undefined if the plugin is registered
   */
  async notify(refusal: string | undefined, signal: AbortSignal): Promise<void> {
    const status = { pluginRegistered: refusal === undefined, error: refusal ?? "" };
    await this.#connect(signal);
    await this.#call("NotifyRegistrationStatus", this.#timeouts.noticeMs, signal, (client, callSignal) =>
      client.notifyRegistrationStatus(status, { signal: callSignal }),
    );
  }

  close(): void {
    this.#channel.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #connect(signal: AbortSignal): Promise<void> {
    await withDeadline(this.#clock, this.#timeouts.dialMs, "HTTP/2 connection", signal, () =>
      this.#settled(),
    );
  }

  // Resolves when connected, or when connecting failed. In the latter case the next call fails with the
  // reason.
  #settled(): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        const state = this.#channel.getConnectivityState(true);
        if (state !== connectivityState.IDLE && state !== connectivityState.CONNECTING) return resolve();
        this.#channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, look);
      };
      look();
    });
  }

  async #call<T>(
    what: string,
    deadlineMs: number,
    signal: AbortSignal,
    call: (client: ReturnType<typeof registrationClientOn>, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await withDeadline(this.#clock, deadlineMs, what, signal, (callSignal) =>
        call(registrationClientOn(this.#channel), callSignal),
      );
    } catch (error) {
      const failure = fromGrpcError(error);
      if (failure === error || !(failure instanceof NodekeeperError)) throw error;
      throw new NodekeeperError(failure.code, `${what}: ${failure.message}`);
    }
  }
}

function registrationClientOn(channel: Channel) {
  return createClient(RegistrationDefinition, channel);
}
