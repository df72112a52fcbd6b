import type {
  AllocatedDevice,
  ClaimToBind,
  ClaimToPrepare,
  DeviceDriverOptions,
  DeviceStatus,
} from "@nodekeeper/sdk";
import type { Process } from "../machine/process.ts";
import { DriverActor } from "./drivers.ts";

export const ATTACHED = "example.com/Attached";
export const FAILED = "example.com/AttachFailed";

/** What the driver does for the devices of a claim before the pod may be bound. */
interface Attachment {
  devices: readonly AllocatedDevice[];
  /** When the claim was allocated, as the driver was told. Undefined if it learned of the claim by its preparation. */
  allocatedAt: string | undefined;
  /** Virtual milliseconds. */
  begunAt: number;
  doneAt: number;
  isFailing: boolean;
}

/** A list of allocations that has reached a driver. */
export interface ToldList {
  /** Virtual milliseconds. */
  at: number;
  claims: readonly { uid: string; allocatedAt: string }[];
  /** Whether the driver was frozen when it was sent: the agent that sent it may have ended since. */
  isLate: boolean;
  /** Whether the driver has answered. */
  isAnswered: boolean;
}

/** A claim that a driver took for deallocated. */
export interface Detachment {
  /** Virtual milliseconds. */
  at: number;
  uid: string;
  allocatedAt: string | undefined;
}

/** Has devices that must be attached to the node before a pod is bound. What is attached outlives the driver's process. */
export class BindingDriver extends DriverActor {
  readonly toldLists: ToldList[] = [];
  readonly detachments: Detachment[] = [];
  /** Kills the agent by chance when it calls the driver to prepare a claim; returns whether it did. */
  meetPreparation: () => boolean = () => false;
  /** Whether no attachment that begins from now on is ever done. */
  isStuck = false;
  readonly #attachments = new Map<string, Attachment>();
  /** UIDs of the claims in the last list. */
  #told = new Set<string>();
  #isReliable = false;

  /** UIDs of the claims that it was told of last. */
  get told(): ReadonlySet<string> {
    return this.#told;
  }

  override settle(): void {
    super.settle();
    this.#isReliable = true;
    this.meetPreparation = () => false;
    this.isStuck = this.machine.chance(0.3);
  }

  /** Returns the status of all devices, as the driver reports it. */
  statuses(): DeviceStatus[] {
    return [...this.#attachments].flatMap(([claimUid, attachment]) =>
      attachment.devices.map(({ pool, device }) => ({
        claimUid,
        pool,
        device,
        conditions: this.#conditions(attachment),
      })),
    );
  }

  protected override conditionsOf(device: string) {
    if (!isBinding(device)) return {};
    return { bindingConditions: [ATTACHED], bindingFailureConditions: [FAILED] };
  }

  protected override bindingOptions(process: Process): Pick<DeviceDriverOptions, "onAllocations" | "status"> {
    return {
      onAllocations: async (claims, signal) => {
        // The agent may not learn that the driver was told.
        const list = this.#tell(claims, process.isCatchingUp);
        await this.hesitate(process, signal);
        list.isAnswered = true;
      },
      status: () => this.reports(() => this.statuses()),
    };
  }

  protected override isCallLost(): boolean {
    return this.meetPreparation();
  }

  protected override taken(claim: ClaimToPrepare): void {
    const devices = claim.devices.filter(({ device }) => isBinding(device));
    if (devices.length > 0 && !this.#attachments.has(claim.uid)) this.#attach(claim.uid, devices, undefined);
  }

  protected override unprepared(): void {
    this.#detachOthers();
  }

  #tell(claims: readonly ClaimToBind[], isLate: boolean): ToldList {
    const told = claims.map(({ uid, allocatedAt, devices }) => ({
      uid,
      allocatedAt: textOf(allocatedAt),
      devices,
    }));
    this.#told = new Set(told.map(({ uid }) => uid));
    const list = { at: this.machine.scheduler.now, claims: told, isLate, isAnswered: false };
    this.toldLists.push(list);
    this.history.note(
      this.name,
      `is told of ${told.map(({ uid, allocatedAt }) => `${uid} of ${allocatedAt}`).join() || "no claims"}`,
    );
    this.#detachOthers();
    for (const { uid, allocatedAt, devices } of told) {
      if (this.#attachments.get(uid)?.allocatedAt !== allocatedAt) this.#attach(uid, devices, allocatedAt);
    }
    return list;
  }

  #attach(uid: string, devices: readonly AllocatedDevice[], allocatedAt: string | undefined): void {
    const { machine } = this;
    const begunAt = machine.scheduler.now;
    const ms = machine.between(100, 6_000);
    const isFailing = machine.chance(0.3) && !this.#isReliable;
    const isLost = this.isStuck || (machine.chance(0.1) && !this.#isReliable);
    const doneAt = isLost && allocatedAt !== undefined ? Number.POSITIVE_INFINITY : begunAt + ms;
    this.#attachments.set(uid, { devices, allocatedAt, begunAt, doneAt, isFailing });
    this.changed(`attaches ${devices.map(({ device }) => device)} to ${uid}`);
    if (Number.isFinite(doneAt)) machine.init.after(ms, () => this.changed(`has attached to ${uid}`));
  }

  // What is neither waiting nor prepared was deallocated.
  #detachOthers(): void {
    const prepared = new Set(this.prepared.values());
    for (const [uid, { allocatedAt }] of this.#attachments) {
      if (this.#told.has(uid) || prepared.has(uid)) continue;
      this.#attachments.delete(uid);
      this.detachments.push({ at: this.machine.scheduler.now, uid, allocatedAt });
      this.changed(`detaches from ${uid}`);
    }
  }

  #conditions({ allocatedAt, begunAt, doneAt, isFailing }: Attachment) {
    const isDone = this.machine.scheduler.now >= doneAt;
    const message = messageFor(allocatedAt, begunAt);
    const isTrue = (value: boolean) => (value ? ("True" as const) : ("False" as const));
    return [
      { type: ATTACHED, status: isTrue(isDone && !isFailing), reason: "Attaching", message },
      { type: FAILED, status: isTrue(isDone && isFailing), reason: "Attaching", message },
    ];
  }
}

/** Returns whether a device has binding conditions: every other one of a driver. */
export function isBinding(device: string): boolean {
  return Number(device.split("-").at(-1)) % 2 === 0;
}

// By which rules recognize the allocation that a condition was reported for.
function messageFor(allocatedAt: string | undefined, begunAt: number): string {
  return allocatedAt === undefined ? `prepared at ${begunAt}` : `allocated at ${allocatedAt}`;
}

/** Returns whether a condition with this message was reported for an allocation. */
export function isReportedFor(message: string, allocation: { allocatedAt: string; at: number }): boolean {
  const [what, , when] = message.split(" ");
  return what === "prepared" ? Number(when) >= allocation.at : when === allocation.allocatedAt;
}

function textOf(allocatedAt: Date): string {
  return allocatedAt.toISOString().replace(/\.\d+Z$/, "Z");
}
