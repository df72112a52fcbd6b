import { execFile } from "node:child_process";
import { copyFile, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual, promisify } from "node:util";
import type {
  AllocatedDevice,
  ClaimToPrepare,
  ClaimToUnprepare,
  ContainerEdits,
  DevicePool,
  DeviceStatus,
  PreparedDevice,
  RecordedClaim,
} from "@nodekeeper/sdk";
import { configurationOf } from "./configuration.ts";
import { attributesOf, deviceName, interfaceName, type NodeInterfaces } from "./interfaces.ts";

const execute = promisify(execFile);

export interface NetworkOptions {
  /** The driver's name. */
  driver: string;
  interfaces: NodeInterfaces;
  /** Directory of the hook. The container runtime must see it at the same path, and only root may write it. */
  directory: string;
  /** Whether the container runtime moves interfaces. If not, or if it does not support this, the hook moves them. */
  usesNetDevices: boolean;
  intervalMs: number;
}

type Device = NonNullable<DevicePool["devices"]>[number];
type Claimed = Pick<AllocatedDevice, "pool" | "device" | "configuration">;

/** What a network driver publishes, prepares and reports. It keeps nothing on disk: the agent has the claims. */
export class Network {
  readonly #options: NetworkOptions;
  readonly #hook: string;
  /** Devices that were prepared, by UID of the claim. */
  readonly #claims = new Map<string, Claimed[]>();
  readonly #published = new Map<string, Device>();

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.#hook = join(options.directory, "move-interface.sh");
  }

  /** Installs the hook for the container runtime. Replaces it atomically, because a container may be starting. */
  async install(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true, mode: 0o755 });
    const fresh = `${this.#hook}.${process.pid}`;
    await copyFile(join(import.meta.dirname, "move-interface.sh"), fresh);
    await rename(fresh, this.#hook);
  }

  /** Yields the free and the allocated interfaces, at the start and after each change. */
  devices(signal: AbortSignal): AsyncGenerator<DevicePool[]> {
    return this.#changes(signal, async () => [{ devices: await this.#devices() }]);
  }

  /** Yields the status of all allocated interfaces, at the start and after each change. */
  status(signal: AbortSignal): AsyncGenerator<DeviceStatus[]> {
    return this.#changes(signal, () => this.#statuses());
  }

  /**
   * Returns the edits for the claim's interfaces. Idempotent: the node does not change until a container starts. Throws
   * if an interface is missing or its configuration is invalid.
   */
  async prepare({ uid, devices }: ClaimToPrepare): Promise<PreparedDevice[]> {
    const interfaces = await this.#options.interfaces.read();
    const prepared = devices.map(({ request, pool, device, configuration, adminAccess }) => {
      // For monitoring: the interface stays where it is.
      if (adminAccess) return { request, pool, device };
      const host = interfaceName(device);
      const link = interfaces.get(host)?.link;
      if (!link) throw new Error(`the node has no free network interface ${host}`);
      return {
        request,
        pool,
        device,
        edits: this.#edits(host, configurationOf({ device, configuration }, host, link)),
      };
    });
    this.#claims.set(uid, claimed(devices));
    return prepared;
  }

  /** Moves the interfaces back, if the container runtime did not do so when the container ended. */
  async unprepare({ uid, devices }: ClaimToUnprepare): Promise<void> {
    const ended = [...claimed(devices), ...(this.#claims.get(uid) ?? [])];
    for (const device of new Set(ended.map(({ device }) => device)))
      await execute(this.#hook, ["back", this.#options.driver, interfaceName(device)], { timeout: 30_000 });
    this.#claims.delete(uid);
  }

  /** Restores the claims from the agent's records. Returns none, because a restart loses no preparation. */
  restore(claims: RecordedClaim[]): string[] {
    this.#claims.clear();
    for (const { uid, devices } of claims) this.#claims.set(uid, claimed(devices));
    return [];
  }

  #edits(host: string, { name, addresses, mtu, routes }: ReturnType<typeof configurationOf>): ContainerEdits {
    const { driver, usesNetDevices } = this.#options;
    const settings = [
      ...(mtu === undefined ? [] : ["mtu", String(mtu)]),
      ...addresses.flatMap((address) => ["address", address]),
      ...routes.flatMap(({ destination, gateway = "-" }) => ["route", destination, gateway]),
    ];
    // The first argument is the name of the program.
    const hook = (action: string, ...args: string[]) => ({
      path: this.#hook,
      args: ["move-interface.sh", action, driver, host, ...args],
      timeout: 30,
    });
    return {
      ...(usesNetDevices ? { netDevices: [{ hostInterfaceName: host, name }] } : {}),
      hooks: [
        { hookName: "createRuntime", ...hook("in", name, ...settings) },
        { hookName: "poststop", ...hook("back") },
      ],
    };
  }

  async #devices(): Promise<Device[]> {
    const interfaces = await this.#options.interfaces.read();
    const allocated = new Set([...this.#claims.values()].flat().map(({ device }) => device));
    // An allocated one stays published while it is moved.
    for (const device of this.#published.keys()) if (!allocated.has(device)) this.#published.delete(device);
    for (const each of interfaces.values()) {
      const name = deviceName(each.name);
      this.#published.set(name, { name, attributes: await attributesOf(each) });
    }
    return [...this.#published.values()].sort((a, b) => (a.name! < b.name! ? -1 : 1));
  }

  async #statuses(): Promise<DeviceStatus[]> {
    const interfaces = await this.#options.interfaces.read();
    return [...this.#claims].flatMap(([claimUid, devices]) =>
      devices.map(({ pool, device }) => {
        const found = interfaces.get(interfaceName(device));
        const condition = (status: "True" | "False", reason: string, message: string) => [
          { type: "Ready", status, reason, message },
        ];
        if (!found?.inPod) {
          const where = found ? "is on the node: no container has it" : "is not on the node";
          const reason = found ? "NotInPod" : "Missing";
          return { claimUid, pool, device, conditions: condition("False", reason, `The interface ${where}`) };
        }
        const { link, inPod } = found;
        const ips = link.addr_info
          .filter(({ scope }) => scope === "global")
          .map(({ local, prefixlen }) => `${local}/${prefixlen}`);
        const carrier = link.flags.includes("LOWER_UP") ? "The link is up" : "The link has no carrier";
        return {
          claimUid,
          pool,
          device,
          conditions: condition("True", "InPod", carrier),
          networkData: { interfaceName: inPod, ips: ips.slice(0, 16), hardwareAddress: link.address ?? "" },
        };
      }),
    );
  }

  async *#changes<T>(signal: AbortSignal, read: () => Promise<T>): AsyncGenerator<T> {
    let last: T | undefined;
    for (;;) {
      const now = await read();
      if (!isDeepStrictEqual(now, last)) yield now;
      last = now;
      await sleep(this.#options.intervalMs, undefined, { signal });
    }
  }
}

function claimed(devices: readonly AllocatedDevice[]): Claimed[] {
  return devices.filter(({ adminAccess }) => !adminAccess);
}
