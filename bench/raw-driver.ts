import { join } from "node:path";
import { DeviceDriverDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { createServer, type Server } from "nice-grpc";

const passThrough = (bytes: Uint8Array) => bytes;
const rawDriver = {
  listAndWatchDevices: {
    path: `/${DeviceDriverDefinition.fullName}/ListAndWatchDevices`,
    requestStream: false as const,
    responseStream: true as const,
    requestSerialize: passThrough,
    requestDeserialize: passThrough,
    responseSerialize: passThrough,
    responseDeserialize: passThrough,
    options: {},
  },
};

/** A driver whose messages are ready made, so that making them is not measured. */
export class RawDriver {
  readonly #server: Server = createServer({ "grpc.max_send_message_length": -1 });
  readonly #watched = Promise.withResolvers<void>();
  /** Resolves when the agent listens to its stream. */
  readonly watched = this.#watched.promise;
  #message: Uint8Array | undefined;
  #wake = Promise.withResolvers<void>();

  /** @param first sent at once to an agent that listens; nothing is sent where it is absent */
  constructor(first?: Uint8Array) {
    this.#message = first;
  }

  async serve(directory: string, name: string): Promise<void> {
    const self = this;
    this.#server.add(RegistrationDefinition, {
      getInfo: async () => ({
        type: "DRAPlugin",
        name,
        endpoint: "",
        supportedVersions: ["nodekeeper.devices.v1alpha2"],
      }),
      notifyRegistrationStatus: async () => ({}),
    });
    this.#server.add(rawDriver, {
      async *listAndWatchDevices() {
        self.#watched.resolve();
        for (;;) {
          if (self.#message) yield self.#message;
          await self.#wake.promise;
        }
      },
    });
    await this.#server.listen(`unix:${join(directory, `${name}.sock`)}`);
  }

  /** Sends a message. Returns the time at which it was handed over, in milliseconds of `performance.now()`. */
  send(message: Uint8Array): number {
    this.#message = message;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
    return performance.now();
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}
