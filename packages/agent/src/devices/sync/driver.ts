import { type Clock, inTurns, type LoopTurns } from "@nodekeeper/core/lib";
import type { CheckedDevice, CheckedPool, CheckedPools } from "../model/checked.ts";
import { poolsOfNamedResources } from "../model/decode-named-resources.ts";
import { type Feature, featuresIn } from "../model/feature-bits.ts";
import {
  type Device,
  type DevicePool,
  type DeviceProblem,
  isBeyondNode,
  type NamedResources,
} from "../model/model.ts";
import type { PoolHead } from "../model/pool-head.ts";
import { PoolReader } from "../model/pool-reader.ts";
import { checkPools, defaultValidation } from "../model/validate.ts";
import { type AddedTaints, TaintedDevices } from "../plan/added-taints.ts";
import { type DroppedField, withoutFeatures } from "../plan/features.ts";
import { checkModels, modelsOfPools } from "../plan/models.ts";
import { DriverFeedback } from "./driver-feedback.ts";
import { DriverStanding, type Standing } from "./driver-standing.ts";
import type { DriverMessage, StreamProtocol, StreamUpdate } from "./driver-stream.ts";
import { PoolPart } from "./pool-part.ts";

/** The desired state of a driver's slices, and the devices that are quarantined. */
export interface Desired {
  /** For versions with pools. */
  pools: CheckedPools["pools"];
  /** For 1.30's v1alpha2. */
  models: NamedResources[];
  problems: readonly DeviceProblem[];
  quarantined: number;
  /** Reported fields that the API server does not store. */
  dropped: readonly DroppedField[];
}

/** What the API server can store. */
export interface Publishable {
  /** Whether the pools are those beyond the node. */
  isBeyond: boolean;
  /** Whether the server has only v1alpha2. */
  isOld: boolean;
  /** Features that the server drops. */
  without: ReadonlySet<Feature>;
  /** Features that the server may drop. */
  unknown: ReadonlySet<Feature>;
}

/** The desired state of a driver that is withdrawn. */
export const nothingDesired: Desired = { pools: [], models: [], problems: [], quarantined: 0, dropped: [] };

/** One driver: its last report, and what is published from it. Unchanged input is not processed again. */
export class Driver {
  readonly name: string;
  /** Reports problems of its devices to the driver. */
  readonly feedback: DriverFeedback;
  readonly #nodeName: string;
  readonly #allowsBeyondNode: boolean;
  #reader: PoolReader;
  #message: DriverMessage | undefined;
  #isRead = true;
  // Releases the message that the reader compares with the next one.
  #releaseLast: (() => void) | undefined;
  // The read in progress, spread over turns of the event loop.
  #reading: Promise<void> | undefined;
  #checked: CheckedPools | undefined;
  readonly #ofNode = new PoolPart<Desired>(false);
  readonly #beyondNode = new PoolPart<Desired>(true);
  readonly #places = new WeakMap<CheckedPool, ReadonlyMap<string, CheckedDevice>>();
  readonly #standing: DriverStanding;
  #isMissing = false;
  #addedTaints: AddedTaints | undefined;
  readonly #tainted = new TaintedDevices();
  // Whether the kubelet need not call a plugin for its devices.
  #needsNoPreparation = false;
  readonly #unprepared = new WeakMap<CheckedPool, CheckedPool>();
  #skipping: { from: CheckedPools; pools: CheckedPools } | undefined;
  #isWithdrawn = false;

  /** @param allowsBeyondNode whether it may have pools beyond the node */
  constructor(name: string, nodeName: string, clock: Clock, allowsBeyondNode = false) {
    this.name = name;
    this.#allowsBeyondNode = allowsBeyondNode;
    this.feedback = new DriverFeedback(clock);
    this.#standing = new DriverStanding(clock);
    this.#nodeName = nodeName;
    this.#reader = this.#newReader();
  }

  get standing(): Readonly<Standing> {
    return this.#standing.current;
  }

  /**
   * Whether its last report is current: it is registered and responds, its stream is open or was ended by the driver,
   * it is not withdrawn, and no taint of the agent applies to all its devices.
   */
  get isPresent(): boolean {
    const { isRegistered, unresponsive, state } = this.standing;
    const isStreaming = state === "streaming" || state === "ended";
    // A stuck driver is tainted too: pods on this node could not start, but pods on other nodes may.
    const isTainted = (this.#addedTaints?.all.length ?? 0) > 0;
    return isRegistered && isStreaming && !unresponsive && !isTainted && !this.#isWithdrawn;
  }

  /** Whether it is present and reports pools beyond the node. */
  get hasClusterPools(): boolean {
    return this.isPresent && (this.#checked?.pools.some(({ fields }) => isBeyondNode(fields)) ?? false);
  }

  /** Whether its slices must be deleted: the wipe delay has passed, or it no longer publishes through the agent. */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn;
  }

  /**
   * Whether its devices are tainted because it was disconnected or unresponsive for the taint delay, or has not
   * registered since the agent's start. Other reasons for taints do not count.
   */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Records a registration. Drops the report of a withdrawn driver. */
  registered(protocol: StreamProtocol, generation: number, needsNoPreparation: boolean): void {
    if (this.#isWithdrawn) this.#forget();
    this.#isWithdrawn = false;
    this.#needsNoPreparation = needsNoPreparation;
    this.#standing.registered(protocol, generation);
  }

  deregistered(reason: string): void {
    this.#standing.deregistered(reason);
  }

  /** Takes an update of its stream. */
  update({ state, error, message }: StreamUpdate): void {
    this.#standing.entered(state, error);
    if (!message) return;
    this.take(message);
    this.#standing.received();
  }

  /** Adopts the published pools of a driver that has not registered since the agent's start. */
  adopt(pools: readonly DevicePool[]): void {
    this.take({ protocol: "published", pools });
    this.#standing.entered("ended", "not registered since the agent's start");
  }

  /** Records whether its process answers. */
  heard(problem: string | undefined): void {
    this.#standing.heard(problem);
  }

  withdraw(): void {
    this.#isWithdrawn = true;
  }

  /**
   * Sets the taints that the agent adds to its devices if the server stores taints. Returns whether they changed.
   * @param isMissing the new value of `isMissing`
   * @param added undefined if there are none
   */
  setTaints(isMissing: boolean, added: AddedTaints | undefined): boolean {
    const isChanged = this.#addedTaints !== added;
    this.#isMissing = isMissing;
    this.#addedTaints = added;
    return isChanged;
  }

  /** Stores a message for the next `read`. Replaces one that was not read yet. */
  take(message: DriverMessage): void {
    const before = this.#message;
    // The previous message was superseded before it was read.
    if (!this.#isRead && before?.protocol === "devices") before.release();
    this.#message = message;
    this.#isRead = false;
  }

  /**
   * Decodes the last message if it is not decoded yet. A large message takes many turns of the event loop.
   * @param onHead receives the head of its first pool, as in `PoolReader.steps`, if the agent adds nothing to its
   * devices
   */
  async read(turns: LoopTurns, onHead?: (head: PoolHead) => void): Promise<void> {
    while (!this.#isRead || this.#reading) {
      // One read at a time. A message that arrives meanwhile is read next.
      this.#reading ??= this.#readMessage(turns, onHead).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
  }

  // Drops everything that it reported.
  #forget(): void {
    this.#message = undefined;
    this.#checked = undefined;
    this.#isRead = true;
    this.#ofNode.made = undefined;
    this.#beyondNode.made = undefined;
    // A message being read stays in use.
    this.#releaseLast = undefined;
    this.#reader = this.#newReader();
  }

  #newReader(): PoolReader {
    const allowsBeyondNode = this.#allowsBeyondNode;
    return new PoolReader({ driver: this.name, nodeName: this.#nodeName, allowsBeyondNode });
  }

  /**
   * The checked pools of the last message read, with the agent's taints and fields; undefined before the first message.
   */
  reported(): CheckedPools | undefined {
    const checked = this.#untainted();
    return checked && this.#addedTaints ? this.#tainted.of(checked, this.#addedTaints) : checked;
  }

  // The driver's own setting takes precedence. Unchanged pools stay the same objects.
  #untainted(): CheckedPools | undefined {
    const from = this.#checked;
    if (!from || !this.#needsNoPreparation) return from;
    if (this.#skipping?.from === from) return this.#skipping.pools;
    const pools = from.pools.map((pool) => {
      if (pool.fields.skipNodeOperations) return pool;
      const known = this.#unprepared.get(pool);
      if (known) return known;
      const skipping = { ...pool, fields: { ...pool.fields, skipNodeOperations: ["*"] } };
      this.#unprepared.set(pool, skipping);
      return skipping;
    });
    this.#skipping = { from, pools: { ...from, pools } };
    return this.#skipping.pools;
  }

  /** A device from the last message read. Undefined if the driver did not report it or is withdrawn. */
  device(pool: string, name: string): Device | undefined {
    if (this.#isWithdrawn) return undefined;
    const found = this.#checked?.pools.find((each) => each.name === pool);
    if (!found) return undefined;
    // Unchanged pools stay the same objects, so they serve as keys.
    const places = this.#places.get(found) ?? new Map(found.devices.map((device) => [device.name, device]));
    this.#places.set(found, places);
    return places.get(name)?.device;
  }

  /** Its pools of the node, or those beyond it, as `reported`. */
  reportedPart(isBeyond: boolean): CheckedPools | undefined {
    const checked = this.reported();
    return checked && this.#part(isBeyond).of(checked);
  }

  /**
   * Returns the features that its pools of the node, or those beyond it, need for their fields, counter sets and
   * devices. Empty before the first message.
   */
  features(isBeyond: boolean): readonly Feature[] {
    const checked = this.reportedPart(isBeyond);
    if (!checked) return [];
    const part = this.#part(isBeyond);
    if (part.needed?.of !== checked) part.needed = { of: checked, features: featuresIn(checked) };
    return part.needed.features;
  }

  #part(isBeyond: boolean): PoolPart<Desired> {
    return isBeyond ? this.#beyondNode : this.#ofNode;
  }

  /** The desired state of its slices of the node, or of pools beyond it; undefined before its first message. */
  desired({ isBeyond, isOld, without, unknown }: Publishable): Desired | undefined {
    if (this.#isWithdrawn) return nothingDesired;
    if (!this.#checked) return undefined;
    const isOldModel = isOld && this.#message?.protocol === "namedResources";
    // If the server drops taints, a device that only the agent tainted must not be quarantined.
    const hasTaints = !isOld && !without.has("DRADeviceTaints") && !unknown.has("DRADeviceTaints");
    const part = this.#part(isBeyond);
    const checked = part.of((hasTaints ? this.reported() : this.#untainted()) ?? this.#checked);
    const source = isOldModel ? this.#message : checked;
    const key = JSON.stringify([isOld, [...without].sort(), [...unknown].sort()]);
    const { made } = part;
    if (made && made.source === source && made.key === key) return made.desired;
    const desired = isOld
      ? this.#asModels(this.#checked)
      : this.#reportedOnly({
          ...withoutFeatures(checked, without, unknown, part.reducedFor(key)),
          models: [],
        });
    part.made = { source, key, desired };
    return desired;
  }

  // Fields that the agent added are not reported as dropped.
  #reportedOnly(desired: Desired): Desired {
    if (!this.#needsNoPreparation) return desired;
    const ofDriver = ({ pool, field }: DroppedField) =>
      field !== "skipNodeOperations" ||
      this.#checked?.pools.some(({ name, fields }) => name === pool && fields.skipNodeOperations);
    return { ...desired, dropped: desired.dropped.filter(ofDriver) };
  }

  async #readMessage(turns: LoopTurns, onHead?: (head: PoolHead) => void): Promise<void> {
    const message = this.#message;
    this.#isRead = true;
    if (!message) return;
    if (message.protocol === "devices") {
      const reader = this.#reader;
      const offer = (head: PoolHead) => {
        const isWhole = !this.#addedTaints && !this.#needsNoPreparation;
        if (reader === this.#reader && isWhole && !this.#isWithdrawn) onHead?.(head);
      };
      const checked = await inTurns(reader.steps(message.message, offer), turns);
      // `forget` was called meanwhile.
      if (reader !== this.#reader) return;
      this.#checked = checked;
      // The reader keeps the bytes of this message to compare the next one with.
      this.#releaseLast?.();
      this.#releaseLast = message.release;
      return;
    }
    if (message.protocol === "published") {
      this.#checked = checkPools(this.name, message.pools);
      return;
    }
    const mapped = poolsOfNamedResources(message.models, this.#nodeName);
    const checked = checkPools(this.name, mapped.pools);
    this.#checked = {
      ...checked,
      problems: [...mapped.problems, ...checked.problems],
      quarantined: checked.quarantined + mapped.problems.length,
    };
  }

  #asModels(checked: CheckedPools): Desired {
    let models: NamedResources[];
    let before: DeviceProblem[] = [];
    let quarantined = 0;
    if (this.#message?.protocol === "namedResources") models = this.#message.models;
    else {
      const reported = this.#ofNode.of(checked);
      const beyond = this.#beyondNode.of(checked).pools;
      const pools = reported.pools.map(({ name, devices, counterSets }) => ({
        name,
        devices: devices.map(({ device }) => device),
        sharedCounters: counterSets.map(({ set }) => set),
      }));
      const old = modelsOfPools(pools);
      models = old.models;
      const refused = beyond.map(({ name }) => ({ pool: name, field: "nodes", message: noneBeyondNode }));
      before = [...refused, ...reported.problems, ...old.problems];
      const others = beyond.reduce((sum, { devices }) => sum + devices.length, 0);
      quarantined = others + reported.quarantined + old.problems.length;
    }
    const valid = checkModels(models, this.#nodeName, defaultValidation);
    return {
      pools: [],
      models: valid.models,
      problems: [...before, ...valid.problems],
      quarantined: quarantined + valid.quarantined,
      dropped: [],
    };
  }
}

const noneBeyondNode = "refused: Kubernetes 1.30 (resource.k8s.io/v1alpha2) has no pools beyond the node";
