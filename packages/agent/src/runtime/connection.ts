import { type Channel, connectivityState } from "@grpc/grpc-js";
import { ImageServiceDefinition, RuntimeServiceDefinition } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { type Clock, stopped, type Timer } from "@nodekeeper/core/lib";
import { type Client, createClient } from "nice-grpc";

export type RuntimeClient = Client<typeof RuntimeServiceDefinition>;

export type ImageClient = Client<typeof ImageServiceDefinition>;

export interface ConnectionOptions {
  path: string;
  maxReceiveBytes: number;
  connectDeadlineMs: number;
  clock: Clock;
  onConnected: () => void;
}

/**
 * The connection to the runtime. The first call establishes it, and the next call re-establishes it after it
 * broke. While the runtime is unavailable, connecting is retried at least every 2 s.
 */
export class RuntimeConnection implements Disposable {
  readonly #options: ConnectionOptions;
  #channel: Channel;
  #client: RuntimeClient;
  #connecting: Timer | undefined;
  #made = 0;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#channel = this.#dial();
    this.#client = createClient(RuntimeServiceDefinition, this.#channel);
    this.#watch(this.#channel);
  }

  /** The client of the runtime service. Throws `stopped` after dispose. */
  get client(): RuntimeClient {
    if (this.#closed) throw stopped("the connection to the container runtime was closed");
    return this.#client;
  }

  /** A client of the image service on the same connection. Throws `stopped` after dispose. */
  get images(): ImageClient {
    if (this.#closed) throw stopped("the connection to the container runtime was closed");
    return createClient(ImageServiceDefinition, this.#channel);
  }

  /** Number of connections established so far. */
  get made(): number {
    return this.#made;
  }

  /** Closes the connection after calls in progress have ended. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.#connecting?.cancel();
    this.#channel.close();
  }

  #dial(): Channel {
    const { path, maxReceiveBytes } = this.#options;
    // The runtime controls the node anyway, and the frame budget would take 9 % of the CPU time of a relist.
    return dialUnix(path, { maxReceiveBytes, isTrusted: true });
  }

  #watch(channel: Channel): void {
    if (this.#closed || channel !== this.#channel) return;
    const state = channel.getConnectivityState(false);
    this.#connecting?.cancel();
    if (state === connectivityState.SHUTDOWN) return;
    if (state === connectivityState.CONNECTING) this.#boundConnecting();
    if (state === connectivityState.READY) {
      this.#made++;
      this.#options.onConnected();
    }
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => this.#watch(channel));
  }

  // A process that accepts connections but never sends anything would block the channel indefinitely.
  #boundConnecting(): void {
    const { clock, connectDeadlineMs } = this.#options;
    this.#connecting = clock.after(connectDeadlineMs, () => {
      const stuck = this.#channel;
      this.#channel = this.#dial();
      this.#client = createClient(RuntimeServiceDefinition, this.#channel);
      stuck.close();
      this.#watch(this.#channel);
    });
  }
}
