import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Channel } from "@grpc/grpc-js";
import { type Claim, DRAPluginDefinition } from "@nodekeeper/core/gen/dra/v1/api.ts";
import {
  DRAResourceHealthDefinition,
  type NodeWatchResourcesResponse,
} from "@nodekeeper/core/gen/drahealth/v1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { createClient } from "nice-grpc";
import { until } from "../until.ts";

const GET_INFO_MS = 5_000;

/**
 * Simulates the kubelet's DRA manager: discovers plugins by their sockets, registers them, and calls the newest one of
 * a driver.
 */
export class DraKubelet implements Disposable {
  readonly #registry: string;
  readonly #channels = new Map<string, Channel>();
  /** Version of the DRA API to use. */
  readonly version: "v1" | "v1beta1";

  constructor(registry: string, version: "v1" | "v1beta1" = "v1") {
    this.#registry = registry;
    this.version = version;
  }

  /** Returns the sockets in the registry directory, newest last. */
  sockets(): string[] {
    try {
      const names = readdirSync(this.#registry).filter((name) => !name.startsWith("."));
      return names.sort((a, b) => this.#bornMs(a) - this.#bornMs(b));
    } catch {
      return [];
    }
  }

  /** Registers all plugins. Returns them by name with their supported versions. */
  async register(): Promise<Map<string, { socket: string; versions: string[] }>> {
    const found = new Map<string, { socket: string; versions: string[] }>();
    for (const socket of this.sockets()) {
      const client = createClient(RegistrationDefinition, this.#dial(socket));
      const signal = AbortSignal.timeout(GET_INFO_MS);
      const info = await client.getInfo({}, { signal }).catch(() => undefined);
      if (info?.type !== "DRAPlugin") continue;
      if (!info.supportedVersions.includes(`${this.version}.DRAPlugin`)) continue;
      await client.notifyRegistrationStatus({ pluginRegistered: true, error: "" });
      found.set(info.name, { socket, versions: info.supportedVersions });
    }
    return found;
  }

  async untilRegistered(driver: string): Promise<{ socket: string; versions: string[] }> {
    return await until(`${driver} is registered with the kubelet`, async () =>
      (await this.register()).get(driver),
    );
  }

  /** Prepares claims once the driver is registered. */
  async prepare(driver: string, ...claims: Claim[]) {
    const client = await this.#client(driver);
    return (await client.nodePrepareResources({ claims })).claims;
  }

  /** Like `prepare`, but cancels the call when the signal aborts. */
  async prepareUntil(signal: AbortSignal, driver: string, ...claims: Claim[]) {
    const client = await this.#client(driver);
    return (await client.nodePrepareResources({ claims }, { signal })).claims;
  }

  async unprepare(driver: string, ...claims: Claim[]) {
    const client = await this.#client(driver);
    return (await client.nodeUnprepareResources({ claims })).claims;
  }

  /** Watches the health of a driver's devices until the signal aborts. */
  async *health(driver: string, signal: AbortSignal): AsyncGenerator<NodeWatchResourcesResponse> {
    const { socket } = await this.untilRegistered(driver);
    const definition =
      this.version === "v1"
        ? DRAResourceHealthDefinition
        : ({ ...DRAResourceHealthDefinition, fullName: "v1alpha1.DRAResourceHealth" } as const);
    yield* createClient(definition, this.#dial(socket)).nodeWatchResources({}, { signal });
  }

  [Symbol.dispose](): void {
    for (const channel of this.#channels.values()) channel.close();
  }

  async #client(driver: string) {
    const { socket } = await this.untilRegistered(driver);
    const fullName = `k8s.io.kubelet.pkg.apis.dra.${this.version}.DRAPlugin`;
    const definition = { ...DRAPluginDefinition, fullName } as typeof DRAPluginDefinition;
    return createClient(definition, this.#dial(socket));
  }

  #bornMs(socket: string): number {
    return statSync(join(this.#registry, socket), { throwIfNoEntry: false })?.birthtimeMs ?? 0;
  }

  #dial(socket: string): Channel {
    const channel =
      this.#channels.get(socket) ?? dialUnix(join(this.#registry, socket), { maxReceiveBytes: 4 << 20 });
    this.#channels.set(socket, channel);
    return channel;
  }
}
