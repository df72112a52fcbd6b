import { type Channel, connectivityState } from "@grpc/grpc-js";
import { type PluginInfo, RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { dialUnix, fromGrpcError } from "@nodekeeper/core/grpc";
import { type Clock, NodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import { type Client, createClient } from "nice-grpc";

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
  readonly #client: Client<typeof RegistrationDefinition>;

  /** Throws `invalid` if the path cannot be dialed. */
  constructor(path: string, timeouts: HandshakeTimeouts, clock: Clock) {
    this.#clock = clock;
    this.#timeouts = timeouts;
    this.#channel = dialUnix(path, { maxReceiveBytes });
    this.#client = createClient(RegistrationDefinition, this.#channel);
  }

  /** Connects and calls GetInfo. Throws `deadline`, `unavailable`, `unsupported` or `exhausted`. */
  async getInfo(signal: AbortSignal): Promise<PluginInfo> {
    await this.#connect(signal);
    return await this.#call("GetInfo", this.#timeouts.infoMs, signal, (callSignal) =>
      this.#client.getInfo({}, { signal: callSignal }),
    );
  }

  /**
   * Calls NotifyRegistrationStatus.
   * @param refusal why the registration failed; undefined if the plugin is registered
   */
  async notify(refusal: string | undefined, signal: AbortSignal): Promise<void> {
    const status = { pluginRegistered: refusal === undefined, error: refusal ?? "" };
    await this.#connect(signal);
    await this.#call("NotifyRegistrationStatus", this.#timeouts.noticeMs, signal, (callSignal) =>
      this.#client.notifyRegistrationStatus(status, { signal: callSignal }),
    );
  }

  [Symbol.dispose](): void {
    this.#channel.close();
  }

  async #connect(signal: AbortSignal): Promise<void> {
    await withDeadline(this.#clock, { ms: this.#timeouts.dialMs, name: "HTTP/2 connection" }, signal, () =>
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
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await withDeadline(this.#clock, { ms: deadlineMs, name: what }, signal, call);
    } catch (error) {
      const failure = fromGrpcError(error);
      if (failure === error || !(failure instanceof NodekeeperError)) throw error;
      throw new NodekeeperError(failure.code, `${what}: ${failure.message}`);
    }
  }
}
