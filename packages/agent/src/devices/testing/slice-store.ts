import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "@nodekeeper/core/kube";
import { parseWithBigInts } from "@nodekeeper/core/lib";
import fc from "fast-check";
import {
  type CheckedPools,
  checkPools,
  type Device,
  type DevicePool,
  encodeSlice,
  PlanMemory,
  type PoolPlan,
  planSlices,
  type SliceVersion,
  type SliceWrite,
  type StoredSlice,
  storedSlice,
} from "../index.ts";

export const driver = "gpu.example.com";
export const nodeName = "worker-1";

/** A pool of this node with plain devices of these names. */
export function poolOf(devices: (string | Device)[], name = nodeName): DevicePool {
  return {
    name,
    devices: devices.map((device) => (typeof device === "string" ? { name: device } : device)),
    sharedCounters: [],
  };
}

export function namesUpTo(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `device-${at}`);
}

/** Checks pools that must all be valid. */
export function checked(...pools: DevicePool[]): CheckedPools["pools"] {
  const answer = checkPools(driver, pools);
  if (answer.problems.length > 0) throw new Error(JSON.stringify(answer.problems[0]));
  return answer.pools;
}

/** The plans of all pools, merged. */
export interface SlicePlan {
  deletes: StoredSlice[];
  updates: SliceWrite[];
  creates: SliceWrite[];
}

export function wholePlan(plans: readonly PoolPlan[]): SlicePlan {
  const writes = plans.flatMap((plan) => plan.writes);
  return {
    deletes: plans.flatMap((plan) => plan.deletes),
    updates: writes.filter(({ stored }) => stored),
    creates: writes.filter(({ stored }) => !stored),
  };
}

function textOf({ deletes, updates, creates }: SlicePlan) {
  const writes = [...updates, ...creates].map(({ name, spec, stored, isChanged }) => [
    name,
    spec,
    stored?.name,
    isChanged,
  ]);
  return [deletes.map(({ name }) => name), writes];
}

/** A minimal API server for plans: stores slices, sets times of taints, and formats quantities differently. */
export class SliceStore {
  readonly objects = new Map<string, KubeObject>();
  readonly version: SliceVersion;
  readonly #memory = new PlanMemory();
  #writes = 0;

  constructor(version: SliceVersion = "v1") {
    this.version = version;
  }

  get stored(): StoredSlice[] {
    return [...this.objects.values()].map((object) => storedSlice(this.version, object));
  }

  plan(pools: CheckedPools["pools"]): SlicePlan {
    const input = { driver, nodeName, pools, stored: this.stored };
    const plan = wholePlan(planSlices({ ...input, memory: this.#memory }));
    // The memory of earlier plans must not affect the plan.
    const afresh = wholePlan(planSlices(input));
    if (!isDeepStrictEqual(textOf(plan), textOf(afresh)))
      throw new Error("the plan depends on those before it");
    return plan;
  }

  /** Plans and applies the plan. Returns it. */
  sync(pools: CheckedPools["pools"]): SlicePlan {
    const plan = this.plan(pools);
    for (const write of this.writesOf(plan)) write();
    return plan;
  }

  /** Returns the writes of a plan one by one, in its order. */
  writesOf({ deletes, updates, creates }: SlicePlan): (() => void)[] {
    return [
      ...deletes.map(
        ({ name }) =>
          () =>
            void this.objects.delete(name),
      ),
      ...updates.map(({ stored, name, spec }) => () => {
        if (!this.objects.has(name)) throw new Error(`${name} is not there`);
        this.#put(encodeSlice(this.version, stored!.metadata, spec));
      }),
      ...creates.map(({ name, spec }) => () => {
        if (this.objects.has(name)) throw new Error(`${name} is there already`);
        this.#put(encodeSlice(this.version, { name }, spec));
      }),
    ];
  }

  #put(object: KubeObject): void {
    const text = JSON.stringify(object, (key, value) => {
      if (key === "taints") return value.map((taint: object) => ({ timeAdded: this.#now(), ...taint }));
      return key === "value" && value === "1Gi" ? "1024Mi" : value;
    });
    const copy = parseWithBigInts(text) as KubeObject;
    copy.metadata.resourceVersion = `${++this.#writes}`;
    this.objects.set(copy.metadata.name!, copy);
  }

  #now(): string {
    return new Date(1_700_000_000_000 + this.#writes * 1_000).toISOString().replace(".000Z", "Z");
  }
}

/** Valid devices of all shapes, for a pool with counter set "memory" with "left" and "right". */
export function anyDevice(name: string): fc.Arbitrary<Device> {
  const identifier = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,31}$/);
  const key = fc.oneof(
    identifier,
    identifier.map((text) => `other.example.com/${text}`),
  );
  const text = fc.string({ maxLength: 16, unit: "binary" }).filter((value) => value.isWellFormed());
  const version = fc.constantFrom("1.2.3", "0.0.1-alpha.1", "10.0.0+build.7");
  const int = fc.integer();
  const quantity = fc.constantFrom("1", "1Gi", "500m", "80G", "12e6");
  const attribute = fc.oneof(
    fc.record({ bool: fc.boolean() }),
    fc.record({ int: fc.oneof(int, fc.constant(9_007_199_254_740_993n)) }),
    fc.record({ string: text }),
    fc.record({ version }),
    fc.record({ ints: fc.array(int, { minLength: 1, maxLength: 3 }) }),
    fc.record({ strings: fc.array(text, { minLength: 1, maxLength: 3 }) }),
  );
  return fc
    .record(
      {
        attributes: fc.dictionary(key, attribute, { maxKeys: 5 }),
        capacity: fc.dictionary(key, fc.record({ value: quantity }), { maxKeys: 5 }),
        taints: fc.array(
          fc.record({
            key: fc.constantFrom("a", "example.com/b"),
            effect: fc.constantFrom("None", "NoExecute"),
          }),
          {
            minLength: 1,
            maxLength: 2,
          },
        ),
        consumesCounters: fc
          .constant(undefined)
          .map(() => [{ counterSet: "memory", counters: { left: { value: "1Gi" } } }]),
        bindsToNode: fc.boolean(),
        allowMultipleAllocations: fc.boolean(),
      },
      { requiredKeys: [] },
    )
    .map((rest): Device => ({ name, ...rest }));
}
