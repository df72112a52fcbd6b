import { rmSync } from "node:fs";
import { DRAPluginDefinition } from "@nodekeeper/core/gen/dra/v1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { createServer } from "nice-grpc";

/** The kubelet's DRA plugin of a driver that keeps its own, for claims of one device. */
export class OwnKubeletPlugin {
  /** Names of claims that the kubelet had prepared, and that it had unprepared. */
  readonly calls = { prepared: [] as string[], unprepared: [] as string[] };
  readonly #server = createServer();
  readonly #socket: string;

  /** @param socket in the kubelet's plugins_registry */
  constructor(socket: string) {
    this.#socket = socket;
  }

  /** Serves it, and waits until the kubelet has registered it. */
  async start(driver: string, device: { request: string; pool: string; device: string }): Promise<void> {
    const { calls } = this;
    const registered = Promise.withResolvers<void>();
    this.#server.add(RegistrationDefinition, {
      getInfo: async () => ({
        type: "DRAPlugin",
        name: driver,
        endpoint: "",
        supportedVersions: ["v1.DRAPlugin"],
      }),
      notifyRegistrationStatus: async () => {
        registered.resolve();
        return {};
      },
    });
    const prepared = {
      devices: [
        {
          requestNames: [device.request],
          poolName: device.pool,
          deviceName: device.device,
          cdiDeviceIds: [],
        },
      ],
      error: "",
    };
    this.#server.add(DRAPluginDefinition, {
      async nodePrepareResources({ claims }) {
        calls.prepared.push(...claims.map(({ name }) => name));
        return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, prepared])) };
      },
      async nodeUnprepareResources({ claims }) {
        calls.unprepared.push(...claims.map(({ name }) => name));
        return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, { error: "" }])) };
      },
    });
    await this.#server.listen(`unix:${this.#socket}`);
    // A pod that comes before is tried again after up to 90 s.
    await registered.promise;
  }

  stop(): void {
    this.#server.forceShutdown();
    rmSync(this.#socket, { force: true });
  }
}
