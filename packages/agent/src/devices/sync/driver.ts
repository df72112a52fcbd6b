import { inTurns, type LoopTurns, type Steps } from "@nodekeeper/core/lib";
import type { CheckedDevice, CheckedPool, CheckedPools } from "../model/checked.ts";
import { poolsOfNamedResources } from "../model/decode-named-resources.ts";
import { type Feature, featuresIn } from "../model/feature-bits.ts";
import type { Device, DeviceProblem, NamedResources } from "../model/model.ts";
import { PoolReader } from "../model/pool-reader.ts";
import type { DeviceDelta } from "../model/read-message.ts";
import { checkPools, defaultValidation } from "../model/validate.ts";
import { type AddedTaints, TaintedDevices } from "../plan/added-taints.ts";
import { withoutFeatures } from "../plan/features.ts";
import { checkModels, modelsOfPools } from "../plan/models.ts";
import type { StreamProtocol, StreamState, WholeMessage } from "./driver-stream.ts";

/** What shall be published of a driver, and what is quarantined of it. */
export interface Desired {
  /** For versions with pools. */
  pools: CheckedPools["pools"];
  /** For 1.30's v1alpha2. */
  models: NamedResources[];
  problems: readonly DeviceProblem[];
  quarantined: number;
}

/** What can be published: everything of it that the server keeps. */
export interface Publishable {
  /** Whether the server has v1alpha2 alone. */
  isOld: boolean;
  /** Features that the server drops. */
  without: ReadonlySet<Feature>;
  /** Features of which it is not known whether the server keeps them. */
  unknown: ReadonlySet<Feature>;
}

/** Nothing of a driver shall be published. */
export const nothingDesired: Desired = { pools: [], models: [], problems: [], quarantined: 0 };

/** One driver: what it reported last, and what is made of it. Nothing is read twice for nothing. */
export class Driver {
  readonly name: string;
  readonly #nodeName: string;
  #reader: PoolReader;
  #message: WholeMessage | undefined;
  #isRead = true;
  // Of the message that the reader compares the next one with.
  #releaseLast: (() => void) | undefined;
  // Of a message or a delta: both change the reader's state, in steps over many turns.
  #reading: Promise<void> | undefined;
  #checked: CheckedPools | undefined;
  #made: { source: unknown; key: string; desired: Desired } | undefined;
  #needed: { of: CheckedPools; features: readonly Feature[] } | undefined;
  readonly #places = new WeakMap<CheckedPool, ReadonlyMap<string, CheckedDevice>>();
  #reduced: { key: string; devices: WeakMap<CheckedDevice, CheckedDevice> } | undefined;
  protocol: StreamProtocol = "none";
  state: StreamState = "waiting";
  /** Wall milliseconds since when it is in that state; 0 before it is in any. */
  since = 0;
  /** The same, monotonic milliseconds. */
  enteredAt = 0;
  error: string | undefined;
  /** Wall milliseconds of its last message. */
  messageAt: number | undefined;
  /** Counts registrations; a stream of an earlier one is not listened to any more. */
  generation = 0;
  isRegistered = false;
  /** It has been disconnected for so long that its devices are tainted. */
  isTainted = false;
  /** What the agent taints of its devices, where the server keeps taints; undefined where it is nothing. */
  addedTaints: AddedTaints | undefined;
  readonly #tainted = new TaintedDevices();
  /** The kubelet need not call a plugin for its devices. */
  needsNoPreparation = false;
  readonly #unprepared = new WeakMap<CheckedPool, CheckedPool>();
  #skipping: { from: CheckedPools; pools: CheckedPools } | undefined;
  /** Its slices are to be deleted: it disconnected for good, or does not publish through the agent any more. */
  isWithdrawn = false;

  constructor(name: string, nodeName: string) {
    this.name = name;
    this.#nodeName = nodeName;
    this.#reader = new PoolReader({ driver: name, nodeName });
  }

  /** Takes a message with everything that it has; it is read by the next `read`, unless another comes before. */
  take(message: WholeMessage): void {
    const before = this.#message;
    // The one before was superseded before it was read.
    if (!this.#isRead && before?.protocol === "devices") before.release();
    this.#message = message;
    this.#isRead = false;
  }

  /**
   * Takes a change of what it has reported, and reads it.
   * Throws `invalid` where it does not fit what was reported before.
   */
  async apply(delta: DeviceDelta, turns: LoopTurns): Promise<void> {
    // Again where other work has started before this continues.
    while (!this.#isRead || this.#reading) await this.read(turns);
    const applying = this.#inSteps((reader) => reader.applySteps(delta), turns);
    const settle = () => {
      this.#reading = undefined;
    };
    // A delta that does not fit is no failure of a message that waits for it.
    this.#reading = applying.then(settle, settle);
    await applying;
  }

  /**
   * Reads its last message, where that is still to be done, and waits for what is being read. A large message takes many
   * turns of the event loop.
   */
  async read(turns: LoopTurns): Promise<void> {
    while (!this.#isRead || this.#reading) {
      // One at a time; what came meanwhile is read after it.
      this.#reading ??= this.#readMessage(turns).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
  }

  /** Nothing that it reported holds any more. */
  forget(): void {
    this.#message = undefined;
    this.#checked = undefined;
    this.#isRead = true;
    this.#made = undefined;
    // A message that is being read stays in use.
    this.#releaseLast = undefined;
    this.#reader = new PoolReader({ driver: this.name, nodeName: this.#nodeName });
  }

  /** The pools that it reported last, checked, as far as they are read, with what the agent adds; undefined before. */
  reported(): CheckedPools | undefined {
    const checked = this.#untainted();
    return checked && this.addedTaints ? this.#tainted.of(checked, this.addedTaints) : checked;
  }

  // A setting of the driver itself is kept. Unchanged pools are the same objects again.
  #untainted(): CheckedPools | undefined {
    const from = this.#checked;
    if (!from || !this.needsNoPreparation) return from;
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

  /** A device that it reported last, as far as it is read; undefined where nothing of it is to be published. */
  device(pool: string, name: string): Device | undefined {
    if (this.isWithdrawn) return undefined;
    const found = this.#checked?.pools.find((each) => each.name === pool);
    if (!found) return undefined;
    // Pools that did not change are the same objects again.
    const places = this.#places.get(found) ?? new Map(found.devices.map((device) => [device.name, device]));
    this.#places.set(found, places);
    return places.get(name)?.device;
  }

  /** The features that its devices need, as far as they are read. */
  features(): readonly Feature[] {
    const checked = this.reported();
    if (!checked) return [];
    if (this.#needed?.of !== checked) this.#needed = { of: checked, features: featuresIn(checked) };
    return this.#needed.features;
  }

  /** What is to be published; undefined before its first message. */
  desired({ isOld, without, unknown }: Publishable): Desired | undefined {
    if (this.isWithdrawn) return nothingDesired;
    if (!this.#checked) return undefined;
    const isOldModel = isOld && this.#message?.protocol === "namedResources";
    // A device that its driver did not taint is not quarantined where the server has no taints.
    const hasTaints = !isOld && !without.has("DRADeviceTaints") && !unknown.has("DRADeviceTaints");
    const checked = (hasTaints ? this.reported() : this.#untainted()) ?? this.#checked;
    const source = isOldModel ? this.#message : checked;
    const key = JSON.stringify([isOld, [...without].sort(), [...unknown].sort()]);
    const made = this.#made;
    if (made && made.source === source && made.key === key) return made.desired;
    const desired = isOld
      ? this.#asModels(this.#checked)
      : { ...withoutFeatures(checked, without, unknown, this.#reducedFor(key)), models: [] };
    this.#made = { source, key, desired };
    return desired;
  }

  // Devices without the same features are the same objects again.
  #reducedFor(key: string): WeakMap<CheckedDevice, CheckedDevice> {
    if (this.#reduced?.key !== key) this.#reduced = { key, devices: new WeakMap() };
    return this.#reduced.devices;
  }

  async #readMessage(turns: LoopTurns): Promise<void> {
    const message = this.#message;
    this.#isRead = true;
    if (!message) return;
    if (message.protocol === "devices") {
      if (!(await this.#inSteps((reader) => reader.steps(message.message), turns))) return;
      // The reader has the bytes of this message now, to compare the next one with.
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

  // Takes the result, unless all was forgotten meanwhile; answers whether it did.
  async #inSteps(work: (reader: PoolReader) => Steps<CheckedPools>, turns: LoopTurns): Promise<boolean> {
    const reader = this.#reader;
    const checked = await inTurns(work(reader), turns);
    if (reader !== this.#reader) return false;
    this.#checked = checked;
    return true;
  }

  #asModels(reported: CheckedPools): Desired {
    let models: NamedResources[];
    let before: DeviceProblem[] = [];
    let quarantined = 0;
    if (this.#message?.protocol === "namedResources") models = this.#message.models;
    else {
      const pools = reported.pools.map(({ name, devices, counterSets }) => ({
        name,
        devices: devices.map(({ device }) => device),
        sharedCounters: counterSets.map(({ set }) => set),
      }));
      const old = modelsOfPools(pools);
      models = old.models;
      before = [...reported.problems, ...old.problems];
      quarantined = reported.quarantined + old.problems.length;
    }
    const checked = checkModels(models, this.#nodeName, defaultValidation);
    return {
      pools: [],
      models: checked.models,
      problems: [...before, ...checked.problems],
      quarantined: quarantined + checked.quarantined,
    };
  }
}
