import { type DevicePool, type Plugin, type PluginOptions, serveDeviceDriver } from "@nodekeeper/sdk";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { History } from "./history.ts";
import { PluginActor } from "./plugins.ts";

/** Name of the driver on all nodes. */
export const POOL_DRIVER = "rack-0.example.com";
export const OTHER_POOL_DRIVER = "other-rack.example.com";
export const rackDrivers: readonly string[] = [POOL_DRIVER, OTHER_POOL_DRIVER];

/** A device that several nodes can use. */
export interface RackDevice {
  name: string;
  pool: keyof typeof nodesOf;
  isHealthy: boolean;
  /** Changes with each modification of its attributes. */
  revision: number;
}

/** The nodes that can use the devices of each pool. */
export const nodesOf = {
  fabric: { allNodes: true },
  rack: {
    nodeSelector: {
      terms: [{ matchExpressions: [{ key: "example.com/rack", operator: "In", values: ["7"] }] }],
    },
  },
} as const satisfies Record<string, Partial<DevicePool>>;

/** Which devices of the rack a driver sees: its cable or its version may be another one than on other nodes. */
export const views = {
  all: () => true,
  some: (_device: RackDevice, at: number) => at % 2 === 0,
  none: () => false,
} as const;
export type View = keyof typeof views;

/** The driver of a rack on one node: reports the devices of the rack that it sees, and some that only its node can use. */
export class PoolDriver extends PluginActor {
  readonly type = "DRAPlugin";
  readonly node: string;
  view: View = "all";
  readonly #rack: () => readonly RackDevice[];
  readonly #socketDirectory: string;
  #local = 1;
  #waiting: (() => void)[] = [];

  /** @param rack returns the devices of the rack */
  constructor(
    machine: Machine,
    history: History,
    {
      node,
      socketDirectory,
      rack,
    }: { node: string; socketDirectory: string; rack: () => readonly RackDevice[] },
  ) {
    super(machine, history, `${POOL_DRIVER} on ${node}`);
    this.node = node;
    this.#rack = rack;
    this.#socketDirectory = socketDirectory;
  }

  /** Devices of the rack that it reports. */
  get shared(): RackDevice[] {
    return this.#rack().filter(views[this.view]);
  }

  /** Names of the devices that claims of pods on its node may get, if its agent publishes the pools of the rack. */
  get healthy(): string[] {
    return [...this.shared.filter(({ isHealthy }) => isHealthy).map(({ name }) => name), ...this.local];
  }

  /** Names of the devices that only its node can use. */
  get local(): string[] {
    return Array.from({ length: this.#local }, (_, at) => `${this.node}-${at}`);
  }

  /** Sees other devices from now on. */
  look(view: View): void {
    this.view = view;
    this.changed(`sees ${view} of the rack`);
  }

  /** Has another number of devices that only its node can use. */
  changeLocal(): void {
    this.#local = this.machine.between(0, 3);
    this.changed("devices of the node");
  }

  /** Reports what it has now. */
  changed(what: string): void {
    this.history.note(this.name, `${what}: ${this.shared.length} shared, ${this.#local} of the node`);
    this.process?.after(0, () => {
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** Is uninstalled; if it is, it is installed again. */
  toggle(): void {
    this.isWanted = !this.isWanted;
    this.history.note(this.name, this.isWanted ? "is installed again" : "is uninstalled");
    if (this.isWanted) this.start();
    else this.kill();
  }

  get isLying(): boolean {
    return false;
  }

  lie(): void {}

  protected override optionsFor(process: Process): PluginOptions {
    return { ...super.optionsFor(process), name: POOL_DRIVER, socketDir: this.#socketDirectory };
  }

  protected serve(process: Process): Plugin {
    return serveDeviceDriver({
      ...this.optionsFor(process),
      devices: () => this.#reports(),
      prepare: ({ devices }) => devices.map(({ request, pool, device }) => ({ request, pool, device })),
      unprepare: () => {},
    });
  }

  async *#reports(): AsyncGenerator<DevicePool[]> {
    for (;;) {
      yield this.#pools();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #pools(): DevicePool[] {
    const pools = Map.groupBy(this.shared, ({ pool }) => pool);
    const local = { devices: this.local.map((name) => ({ name })) };
    return [
      ...[...pools].map(([name, devices]) => poolOf(name, devices)),
      ...(this.#local > 0 ? [local] : []),
    ];
  }
}

function poolOf(name: keyof typeof nodesOf, devices: readonly RackDevice[]): DevicePool {
  return {
    name,
    ...structuredClone<Partial<DevicePool>>(nodesOf[name]),
    devices: devices.map(({ name: device, isHealthy, revision }) => ({
      name: device,
      attributes: { revision: { int: BigInt(revision) } },
      ...(isHealthy ? {} : { taints: [{ key: "example.dev/broken", effect: "NoSchedule" }] }),
    })),
  };
}
