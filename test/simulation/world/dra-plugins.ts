import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DRAPluginDefinition } from "@nodekeeper/core/gen/dra/v1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { createClient } from "nice-grpc";
import type { Machine } from "../machine/machine.ts";

/** Versions of the kubelet's API for DRA plugins. */
export const draVersions = ["v1", "v1beta1"] as const;
export type DraVersion = (typeof draVersions)[number];

interface Registered {
  socket: string;
  /** Of the socket file, which may be replaced by another one of its name. */
  inode: number;
  /** Undefined until the plugin has registered. */
  driver: string | undefined;
}

const GET_INFO_MS = 5_000;

/**
 * The DRA plugins that registered with the kubelet. Sockets are ordered by when they were found, because the file
 * system's own times are not those of the world.
 */
export class DraPlugins {
  readonly #directory: string;
  readonly #machine: Machine;
  readonly #version: DraVersion;
  #plugins: Registered[] = [];
  #found: { changes: number; sockets: ReadonlyMap<string, number> } | undefined;

  constructor(machine: Machine, directory: string, version: DraVersion) {
    this.#machine = machine;
    this.#directory = directory;
    this.#version = version;
  }

  /** Registers plugins whose sockets appeared, and forgets those whose sockets were removed. */
  step(): void {
    const found = this.#sockets();
    this.#plugins = this.#plugins.filter(({ socket, inode }) => found.get(socket) === inode);
    for (const [socket, inode] of found) {
      if (this.#plugins.some((plugin) => plugin.socket === socket)) continue;
      const plugin: Registered = { socket, inode, driver: undefined };
      this.#plugins.push(plugin);
      void this.#register(plugin).catch(() => {
        // Tried again: a socket that was bound is not yet listened on, or its process has died.
        this.#plugins = this.#plugins.filter((other) => other !== plugin);
      });
    }
  }

  /** Returns a client of a driver's newest plugin. Throws if none has registered. */
  client(driver: string) {
    const plugin = this.#plugins.findLast((each) => each.driver === driver);
    if (!plugin) throw new Error(`driver ${driver} is not registered`);
    const fullName = `k8s.io.kubelet.pkg.apis.dra.${this.#version}.DRAPlugin`;
    const definition = { ...DRAPluginDefinition, fullName } as typeof DRAPluginDefinition;
    return createClient(definition, this.#dial(plugin));
  }

  /** Inodes of sockets, by name. The directory is read if it has changed. */
  #sockets(): ReadonlyMap<string, number> {
    const changes = this.#machine.changes.get(this.#directory) ?? 0;
    if (this.#found?.changes === changes) return this.#found.sockets;
    const names = readdirSync(this.#directory).filter((name) => !name.startsWith("."));
    const sockets = new Map(names.sort().map((name) => [name, statSync(join(this.#directory, name)).ino]));
    this.#found = { changes, sockets };
    return sockets;
  }

  async #register(plugin: Registered): Promise<void> {
    const client = createClient(RegistrationDefinition, this.#dial(plugin));
    const { name } = await client.getInfo({}, { signal: AbortSignal.timeout(GET_INFO_MS) });
    await client.notifyRegistrationStatus({ pluginRegistered: true, error: "" });
    plugin.driver = name;
  }

  #dial({ socket }: Registered) {
    return dialUnix(join(this.#directory, socket), { maxReceiveBytes: 4 << 20 });
  }
}
