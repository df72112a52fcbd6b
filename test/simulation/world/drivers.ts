import {
  type ClaimToPrepare,
  type DeviceDriverOptions,
  type DeviceHealth,
  type DevicePool,
  type Plugin,
  type PreparedDevice,
  serveDeviceDriver,
} from "@nodekeeper/sdk";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { History } from "./history.ts";
import { PluginActor } from "./plugins.ts";

type PublishedDevice = NonNullable<DevicePool["devices"]>[number];

interface Device {
  name: string;
  pool: string;
  isHealthy: boolean;
  /** Changes with each modification of its attributes. */
  revision: number;
}

/** A device that is prepared for another claim than the one which holds it. */
export interface Clash {
  /** When the driver was first called for it, in virtual milliseconds. */
  takenAt: number;
  what: string;
}

/** A call for a claim that has reached the driver. */
export interface ClaimCall {
  isPrepare: boolean;
  /** Virtual milliseconds. */
  at: number;
  /** Virtual milliseconds at which the driver had done it. */
  doneAt: number | undefined;
  /** Whether the agent accepts the answer, and was certainly waiting for it. */
  isAccepted: boolean;
  /** The process that was called, and when it ended, in virtual milliseconds. Undefined while it runs. */
  process: Process;
  endedAt: number | undefined;
  driver: string;
  uid: string;
  /** The devices, or shares of them, by `keyOf`. */
  devices: string[];
}

// Enough for a pool of several slices.
const MANY_DEVICES = 160;

/** What a driver answers instead of the devices of a claim. The agent must refuse each of them. */
const falseAnswers: Readonly<Record<string, (devices: PreparedDevice[]) => PreparedDevice[]>> = {
  missing: (devices) => devices.slice(1),
  twice: (devices) => [...devices, ...devices],
  other: (devices) => devices.map((each) => ({ ...each, device: `${each.device}0` })),
  otherPool: (devices) => devices.map((each) => ({ ...each, pool: "third" })),
  more: (devices) => [...devices, ...devices.map((each) => ({ ...each, device: `${each.device}0` }))],
  noCdiId: (devices) => devices.map((each) => ({ ...each, cdiDeviceIds: ["no ID of a device"] })),
};
const DUPLICATES = "duplicates";

/** Has devices that come, go and become unhealthy, and prepares them. The hardware outlives the driver's process. */
export class DriverActor extends PluginActor {
  readonly type = "DRAPlugin";
  /** UIDs of claims that devices are prepared for, by `keyOf`. */
  readonly prepared = new Map<string, string>();
  /** Devices that were prepared for a claim while they were prepared for another one. */
  readonly clashes: Clash[] = [];
  // When the driver was first called for what it holds, in virtual milliseconds.
  readonly #takenAt = new Map<string, number>();
  #devices: Device[] = [];
  #made = 0;
  // Versions of the driver that do not report health taint their unhealthy devices.
  #hasHealth: boolean;
  #isMalformed = false;
  // A key of `falseAnswers`, or `DUPLICATES`. Undefined if it is honest.
  #falsehood: string | undefined;
  // Whether an operator may divide its hardware into many devices or few.
  readonly #isDivisible: boolean;
  #waiting: (() => void)[] = [];

  readonly #onCall: (call: ClaimCall) => void;
  // Calls that waited while the process was frozen.
  readonly #late = new WeakSet<ClaimCall>();
  readonly #hasShares: boolean;

  /** @param hasShares whether every other device may be allocated several times */
  constructor(
    machine: Machine,
    history: History,
    name: string,
    onCall: (call: ClaimCall) => void,
    hasShares = false,
  ) {
    super(machine, history, name);
    this.#onCall = onCall;
    this.#hasShares = hasShares;
    this.#hasHealth = machine.chance(0.5);
    this.isRolling = machine.chance(0.5);
    this.#isDivisible = machine.chance(0.25);
    this.#divide();
  }

  /** Names of the devices that any claim may get. */
  get healthy(): string[] {
    return this.#devices.filter(({ isHealthy }) => isHealthy).map(({ name }) => name);
  }

  /** A device comes, goes, becomes unhealthy or healthy, or gets other attributes. */
  change(): void {
    const { machine } = this;
    const device = machine.pick(this.#devices);
    const what = machine.pick([
      "add",
      "remove",
      "health",
      "health",
      "attributes",
      "malformed",
      "divide",
    ] as const);
    if (what === "add") this.#add();
    else if (what === "malformed") this.#isMalformed = !this.#isMalformed;
    else if (what === "divide") this.#divide();
    else if (device) this.#changeDevice(device, what);
    this.changed(what);
  }

  /** Gets one more device. */
  grow(): void {
    this.#add();
    this.changed("add");
  }

  /** A device takes the place of another one. */
  exchange(): void {
    const [oldest] = this.#devices;
    if (!oldest) return;
    this.#changeDevice(oldest, "remove");
    this.#add(oldest.pool);
    this.changed("exchange");
  }

  protected changed(what: string): void {
    this.history.note(this.name, `${what}: ${this.healthy.length} of ${this.#devices.length} are healthy`);
    // Not those that wait now: a process that has just started waits from its next step.
    this.process?.after(0, () => {
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** Is replaced by another version, in a rolling update if it supports that. */
  replace(): void {
    this.#hasHealth = !this.#hasHealth;
    this.history.note(this.name, `is replaced: ${this.#hasHealth ? "reports health" : "reports no health"}`);
    this.renew();
  }

  // Drawn when it was made.
  override mayRoll(): void {}

  get isLying(): boolean {
    return this.#falsehood !== undefined;
  }

  lie(): void {
    this.#lie(this.machine.pick([undefined, DUPLICATES, ...Object.keys(falseAnswers)]));
  }

  override settle(): void {
    super.settle();
    // Claims that a liar never prepares would not be prepared at rest.
    if (this.#falsehood !== undefined) this.#lie(this.isStubborn ? DUPLICATES : undefined);
  }

  #lie(falsehood: string | undefined): void {
    this.#falsehood = falsehood;
    this.changed(falsehood === undefined ? "tells the truth" : `lies: ${falsehood}`);
  }

  /** Is uninstalled; if it is, it is installed again. */
  toggle(): void {
    this.isWanted = !this.isWanted;
    this.history.note(this.name, this.isWanted ? "is installed again" : "is uninstalled");
    if (this.isWanted) this.start();
    else this.kill();
  }

  protected serve(process: Process): Plugin {
    return serveDeviceDriver({
      ...this.optionsFor(process),
      ...this.bindingOptions(process),
      devices: () => this.reports(() => this.#pools()),
      ...(this.#hasHealth ? { health: () => this.reports(() => this.#health()) } : {}),
      prepare: async (claim, signal) => {
        if (this.isCallLost()) throw new Error("the call has not arrived");
        this.#take(claim);
        const call = this.#called(process, claim, true);
        await this.hesitate(process, signal);
        const prepared = claim.devices.map(({ request, pool, device, shareId }) => ({
          request,
          pool,
          device,
          ...(shareId ? { shareId } : {}),
          edits: { env: { DEVICE: device } },
        }));
        const falsified = falseAnswers[this.#falsehood ?? ""]?.(prepared);
        this.#done(call, falsified === undefined);
        return falsified ?? prepared;
      },
      unprepare: async (claim, signal) => {
        const { uid } = claim;
        const call = this.#called(process, claim, false);
        this.history.note(this.name, `unprepares ${uid}`);
        await this.hesitate(process, signal);
        for (const [key, holder] of this.prepared) if (holder === uid) this.prepared.delete(key);
        this.#done(call, true);
        this.unprepared();
      },
    });
  }

  #called(
    process: Process,
    { uid, devices }: Pick<ClaimToPrepare, "uid" | "devices">,
    isPrepare: boolean,
  ): ClaimCall {
    const { scheduler } = this.machine;
    const names = devices.map(({ pool, device, shareId }) => keyOf(pool, device, shareId));
    const { name: driver } = this;
    const call: ClaimCall = {
      ...{ isPrepare, at: scheduler.now, process, driver, uid, devices: names },
      ...{ doneAt: undefined, isAccepted: false, endedAt: undefined },
    };
    // The agent has called a while ago.
    if (process.isCatchingUp) this.#late.add(call);
    process.onDeath(() => {
      call.endedAt = scheduler.now;
    });
    this.#onCall(call);
    return call;
  }

  #done(call: ClaimCall, isAnswerValid: boolean): void {
    call.doneAt = this.machine.scheduler.now;
    call.isAccepted = isAnswerValid && !this.#late.has(call) && !call.process.isCatchingUp;
  }

  /** What it serves for devices with binding conditions. */
  protected bindingOptions(_process: Process): Pick<DeviceDriverOptions, "onAllocations" | "status"> {
    return {};
  }

  /** Returns the binding conditions of a device. */
  protected conditionsOf(_device: string): Pick<PublishedDevice, "bindingConditions"> {
    return {};
  }

  /** Whether a call to prepare does not arrive, because the agent dies. */
  protected isCallLost(): boolean {
    return false;
  }

  /** Called when the devices of a claim begin to be prepared. */
  protected taken(_claim: ClaimToPrepare): void {}

  /** Called when the devices of a claim were unprepared. */
  protected unprepared(): void {}

  // As soon as the driver is called, it may have prepared the devices.
  #take(claim: ClaimToPrepare): void {
    const { uid, devices } = claim;
    for (const { pool, device, shareId } of devices) {
      const key = keyOf(pool, device, shareId);
      const holder = this.prepared.get(key);
      if (holder !== undefined && holder !== uid)
        this.clashes.push({
          takenAt: this.#takenAt.get(key) ?? 0,
          what: `${this.name} ${key} is prepared for ${uid} and still for ${holder}`,
        });
      if (holder !== uid) this.#takenAt.set(key, this.machine.scheduler.now);
      this.prepared.set(key, uid);
    }
    this.history.note(this.name, `prepares ${devices.map(({ device }) => device)} for ${uid}`);
    this.taken(claim);
  }

  #add(pool = this.machine.chance(0.7) ? "" : "second"): void {
    const name = `${this.name.split(".")[0]}-${this.#made++}`;
    this.#devices.push({ name, pool, isHealthy: true, revision: 0 });
  }

  // Other devices than before.
  #divide(): void {
    if (!this.#isDivisible && this.#made > 0) return;
    this.#devices = [];
    const isFine = this.#isDivisible && this.machine.chance(0.7);
    for (let left = isFine ? MANY_DEVICES : this.machine.between(1, 6); left > 0; left--) this.#add();
  }

  #changeDevice(device: Device, what: "remove" | "health" | "attributes"): void {
    if (what === "health") device.isHealthy = !device.isHealthy;
    if (what === "attributes") device.revision++;
    if (what === "remove") this.#devices = this.#devices.filter((other) => other !== device);
  }

  protected async *reports<T>(read: () => T): AsyncGenerator<T> {
    for (;;) {
      yield read();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #pools(): DevicePool[] {
    const malformed = { name: "Not A Name" };
    const pools = Map.groupBy(this.#devices, ({ pool }) => pool);
    return [...pools].map(([name, devices]) => ({
      name,
      devices: [
        ...devices.map((device) => this.#published(device)),
        ...(this.#falsehood === DUPLICATES ? devices.map((device) => this.#published(device)) : []),
        ...(this.#isMalformed ? [malformed] : []),
      ],
    }));
  }

  #published({ name, isHealthy, revision }: Device): PublishedDevice {
    const isTainted = !isHealthy && !this.#hasHealth;
    return {
      name,
      attributes: { revision: { int: BigInt(revision) } },
      ...(this.#isShared(name)
        ? { allowMultipleAllocations: true, capacity: { memory: { value: "8Gi" } } }
        : {}),
      ...this.conditionsOf(name),
      ...(isTainted ? { taints: [{ key: "example.dev/broken", effect: "NoSchedule" }] } : {}),
    };
  }

  #isShared(device: string): boolean {
    return this.#hasShares && Number(device.split("-").at(-1)) % 2 === 0;
  }

  #health(): DeviceHealth[] {
    return this.#devices.map(({ name, pool, isHealthy }) => ({
      pool,
      device: name,
      healthy: isHealthy,
      ...(isHealthy ? {} : { message: "too hot", taintEffect: "NoSchedule" }),
    }));
  }
}

/** Identifies a device, or a share of it, among those of its driver. */
export function keyOf(pool: string, device: string, share?: string): string {
  return [pool, device, ...(share ? [share] : [])].join("/");
}
