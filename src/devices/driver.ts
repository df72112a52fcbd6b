import type { CheckedPools } from "./checked.ts";
import { poolsOfNamedResources } from "./decode-named-resources.ts";
import type { DriverMessage, StreamProtocol, StreamState } from "./driver-stream.ts";
import { type Feature, withoutFeatures } from "./features.ts";
import type { DeviceProblem, NamedResources } from "./model.ts";
import { checkModels, modelsOfPools } from "./models.ts";
import { PoolReader } from "./pool-reader.ts";
import { checkPools, defaultValidation } from "./validate.ts";

/** What shall be published of a driver, and what is held back of it. */
export interface Desired {
  /** For versions with pools. */
  pools: CheckedPools["pools"];
  /** For 1.30's v1alpha2. */
  models: NamedResources[];
  problems: readonly DeviceProblem[];
  quarantined: number;
}

/** One driver: what it said last, and what is made of it. Nothing is read twice for nothing. */
export class Driver {
  readonly name: string;
  readonly #nodeName: string;
  #reader: PoolReader;
  #message: DriverMessage | undefined;
  #made: { key: string; message: DriverMessage; desired: Desired } | undefined;
  protocol: StreamProtocol = "none";
  state: StreamState = "waiting";
  /** Wall milliseconds since when it is in that state. */
  since = 0;
  error: string | undefined;
  /** Wall milliseconds of its last message. */
  messageAt: number | undefined;
  /** Counts registrations; a stream of an earlier one says nothing any more. */
  generation = 0;
  isRegistered = false;
  /** Everything it had shall go. */
  isWiped = false;

  constructor(name: string, nodeName: string) {
    this.name = name;
    this.#nodeName = nodeName;
    this.#reader = new PoolReader({ nodeName });
  }

  get hasMessage(): boolean {
    return this.#message !== undefined;
  }

  /** Whether it said something that could not be read as a whole. */
  take(message: DriverMessage): void {
    this.#message = message;
  }

  /** A driver that comes back with another protocol begins anew; what it said holds until its first message. */
  forget(): void {
    this.#message = undefined;
    this.#made = undefined;
    this.#reader = new PoolReader({ nodeName: this.#nodeName });
  }

  /**
   * What it wants; undefined before its first message.
   * @param isOld whether the server has v1alpha2 alone
   * @param without features that the server drops
   */
  desired(isOld: boolean, without: ReadonlySet<Feature>): Desired | undefined {
    if (this.isWiped) return { pools: [], models: [], problems: [], quarantined: 0 };
    const message = this.#message;
    if (!message) return undefined;
    const key = JSON.stringify([isOld, [...without].sort()]);
    if (this.#made?.message === message && this.#made.key === key) return this.#made.desired;
    const desired = isOld ? this.#asModels(message) : this.#asPools(message, without);
    this.#made = { key, message, desired };
    return desired;
  }

  #asPools(message: DriverMessage, without: ReadonlySet<Feature>): Desired {
    if (message.protocol === "devices")
      return this.#ownNodeOnly(this.#reader.read(message.frame, without), []);
    const mapped = poolsOfNamedResources(message.models, this.#nodeName);
    const kept = withoutFeatures(mapped.pools, without);
    return this.#ownNodeOnly(checkPools(kept.pools), [...mapped.problems, ...kept.problems]);
  }

  #asModels(message: DriverMessage): Desired {
    let models: NamedResources[];
    let before: DeviceProblem[] = [];
    let heldBack = 0;
    if (message.protocol === "devices") {
      const checked = this.#reader.read(message.frame);
      const pools = checked.pools.map(({ name, nodes, devices, counterSets }) => ({
        name,
        nodes,
        devices: devices.map(({ device }) => device),
        sharedCounters: counterSets.map(({ set }) => set),
      }));
      const old = modelsOfPools(pools);
      models = old.models;
      before = [...checked.problems, ...old.problems];
      heldBack = checked.quarantined + old.problems.length;
    } else models = message.models;
    const checked = checkModels(models, this.#nodeName, defaultValidation);
    return {
      pools: [],
      models: checked.models,
      problems: [...before, ...checked.problems],
      quarantined: heldBack + checked.quarantined,
    };
  }

  // Slices that are not of this node would be published by every node's agent, and are none of this one's business.
  #ownNodeOnly({ pools, problems, quarantined }: CheckedPools, before: readonly DeviceProblem[]): Desired {
    const foreign = pools.filter(({ nodes }) => nodes.kind !== "thisNode");
    const message = "held back: the agent publishes devices of its own node only";
    return {
      pools: pools.filter(({ nodes }) => nodes.kind === "thisNode"),
      models: [],
      problems: [
        ...before,
        ...problems,
        ...foreign.map(({ name }): DeviceProblem => ({ pool: name, field: "nodes", message })),
      ],
      quarantined:
        quarantined + before.length + foreign.reduce((sum, { devices }) => sum + devices.length, 0),
    };
  }
}
