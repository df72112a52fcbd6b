import * as wire from "../gen/nodekeeper/devices/v1alpha1/api.ts";
import { ListAndWatchDevicesFrame } from "../gen/nodekeeper/devices/v1alpha1/frames.ts";
import { messageOf } from "../lib/index.ts";
import { Canonical } from "./canonical.ts";
import type { CheckedPools } from "./checked.ts";
import { decodeDevice, decodePoolsBy } from "./decode-pools.ts";
import { type DeviceContext, type ExaminedDevice, examineDevice } from "./examine-device.ts";
import { deviceWithout, type Feature, heldBack, unsafeWithout } from "./features.ts";
import { checkPoolsBy, defaultValidation, type PoolOf, type ValidationOptions } from "./validate.ts";

/** The driver's service with its messages as they come: one that is as the one before is not even decoded. */
export const rawDeviceDriver = {
  ...wire.DeviceDriverDefinition,
  methods: {
    listAndWatchDevices: {
      ...wire.DeviceDriverDefinition.methods.listAndWatchDevices,
      responseType: {
        ...ListAndWatchDevicesFrame,
        decode: (bytes: Uint8Array) => bytes as never,
        fromPartial: (bytes: unknown) => bytes as never,
      },
    },
  },
} as const;

/** The driver's service as the agent calls it: messages come as frames, for `PoolReader`. */
export const framedDeviceDriver = {
  ...wire.DeviceDriverDefinition,
  methods: {
    listAndWatchDevices: {
      ...wire.DeviceDriverDefinition.methods.listAndWatchDevices,
      responseType: ListAndWatchDevicesFrame,
    },
  },
} as const;

export interface PoolReaderOptions {
  nodeName: string;
  validation?: ValidationOptions;
}

/**
 * Reads the messages of one driver, one after another. Every message carries all devices, and next to all are what
 * they were in the message before: those are recognized by their bytes and neither decoded nor checked again. A device
 * whose bytes make no sense is held back like any bad one.
 */
export class PoolReader {
  readonly #nodeName: string;
  readonly #validation: ValidationOptions;
  readonly #canonical = new Canonical();
  #previous = new Map<string, PoolMemory>();

  constructor({ nodeName, validation = defaultValidation }: PoolReaderOptions) {
    this.#nodeName = nodeName;
    this.#validation = validation;
  }

  /** The pools of a message, checked, without the features that the API server drops (see `withoutFeatures`). */
  read(message: ListAndWatchDevicesFrame, without: ReadonlySet<Feature> = new Set()): CheckedPools {
    const decoded = decodePoolsBy(message.pools, this.#nodeName, (bytes) => bytes);
    const problems = decoded.problems;
    const pools = decoded.pools.flatMap((pool): PoolOf<Uint8Array>[] => {
      if (!without.has("DRAPartitionableDevices")) return [pool];
      if (pool.nodes.kind !== "perDevice") return [{ ...pool, sharedCounters: [] }];
      const message = heldBack("DRAPartitionableDevices");
      problems.push({ pool: pool.name, field: "perDeviceNodeSelection", message });
      return [];
    });
    const memories = new Map<string, PoolMemory>();
    const answer = checkPoolsBy(pools, this.#validation, this.#canonical, (pool, context) => {
      const key = JSON.stringify([context.key, [...without].sort()]);
      const memory = new PoolMemory(key);
      memories.set(pool.name, memory);
      const before = this.#previous.get(pool.name);
      const recall = before?.key === key ? before.recall() : () => undefined;
      return (bytes) => {
        const examined = recall(bytes) ?? this.#examine(bytes, context, without);
        memory.add(bytes, examined);
        return examined;
      };
    });
    this.#previous = memories;
    return { ...answer, problems: problems.concat(answer.problems) };
  }

  #examine(bytes: Uint8Array, context: DeviceContext, without: ReadonlySet<Feature>): ExaminedDevice {
    let decoded: wire.Device;
    try {
      decoded = wire.Device.decode(bytes);
    } catch (error) {
      return { name: "", problems: [{ field: "", message: `not a device: ${messageOf(error)}` }] };
    }
    const device = decodeDevice(decoded);
    if (without.size === 0) return examineDevice(device, context, this.#canonical);
    const need = unsafeWithout(device, without);
    if (!need) return examineDevice(deviceWithout(device, without), context, this.#canonical);
    return { name: device.name, problems: [{ field: need.field, message: heldBack(need.feature) }] };
  }
}

/** What became of each device of a pool, by its bytes. */
class PoolMemory {
  readonly key: string;
  readonly #bytes: Uint8Array[] = [];
  readonly #examined: ExaminedDevice[] = [];

  constructor(key: string) {
    this.key = key;
  }

  add(bytes: Uint8Array, examined: ExaminedDevice): void {
    this.#bytes.push(bytes);
    this.#examined.push(examined);
  }

  /** Finds devices that are asked for one after another; cheapest in the order in which they were added. */
  recall(): (bytes: Uint8Array) => ExaminedDevice | undefined {
    let next = 0;
    let places: Map<string, number> | undefined;
    return (bytes) => {
      const expected = this.#bytes[next];
      if (!expected || Buffer.compare(expected, bytes) !== 0) {
        places ??= new Map(this.#bytes.map((item, at) => [textOf(item), at]));
        const place = places.get(textOf(bytes));
        // Most likely it changed where it is, and the one after it is the one after it.
        next = (place ?? next) + 1;
        return place === undefined ? undefined : this.#examined[place];
      }
      return this.#examined[next++];
    };
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
