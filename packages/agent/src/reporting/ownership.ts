import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { type Clock, RepairPace, retryPolicies } from "@nodekeeper/core/lib";
import { type ApplyPart, applyParts } from "./bodies.ts";
import { lostFields } from "./contests.ts";
import { type JsonObject, sameJson } from "./json.ts";
import { appliedTime, appliedValues, ownedFields } from "./owned-values.ts";

// The watch event of the agent's own write may be delayed. Only a difference that persists this long counts.
const CONFIRM_AFTER_MS = 400;

/** What the agent's field manager owns in one part of an object. */
interface Owned {
  /** Its field set, serialized; empty if it owns nothing. */
  fields: string;
  /** See `appliedTime`. */
  time: string;
  /** As the API server has them, also after a write, so that values that it normalises are equal. */
  values: JsonObject;
}

const nothing: Owned = { fields: "", time: "", values: {} };

/** Fields changed or removed by another client. */
export interface OwnershipLoss {
  parts: readonly ApplyPart[];
  /** Field sets in fieldsV1 format, one per part. */
  fields: readonly JsonObject[];
  /** managedFields entries of other field managers. */
  others: readonly ManagedFieldsEntry[];
}

/**
 * Detects changes by other clients to the agent's fields in one object. Compares the agent's managedFields entries in
 * watch events with those in the responses to its last writes or, before the first write of a part, in the object as it
 * was read. If another client changes a field, the API server removes it from the agent's set. If a write of an earlier
 * agent process arrives late, perhaps after a withdrawal, the set differs, the time is later or, within the same
 * second, the values differ.
 */
export class Ownership {
  readonly #fieldManager: string;
  readonly #expected = new Map<ApplyPart, Owned>();
  #seen: ReadonlyMap<ApplyPart, Owned> | undefined;
  #others: readonly ManagedFieldsEntry[] = [];
  readonly #repairs: RepairPace;

  constructor(fieldManager: string, clock: Clock) {
    this.#fieldManager = fieldManager;
    this.#repairs = new RepairPace(clock, retryPolicies.objectRepair);
  }

  /**
   * Records the object as it was read before the agent's first write, or the response to one of its writes.
   * @param object undefined if it does not exist
   */
  expect(part: ApplyPart, object: KubeObject | undefined): void {
    this.#expected.set(part, object ? this.#ownedIn(object, part) : nothing);
  }

  /**
   * Records the object of a watch event. `object` is undefined if it was deleted. Returns the delay after which to call
   * `takeLoss`, in milliseconds. Undefined if the agent owns what it wrote.
   */
  saw(object: KubeObject | undefined): number | undefined {
    this.#seen = new Map(applyParts.map((part) => [part, object ? this.#ownedIn(object, part) : nothing]));
    const entries = object?.metadata.managedFields ?? [];
    this.#others = entries.filter(({ manager }) => manager !== this.#fieldManager);
    return this.confirmInMs();
  }

  /** Returns the same delay for the object that `saw` recorded last. */
  confirmInMs(): number | undefined {
    return this.#lost().length === 0 ? undefined : CONFIRM_AFTER_MS + this.#repairs.delayMs;
  }

  /**
   * Returns the fields that another client changed or removed, and counts their repair. Undefined if there are none.
   * Each change is returned once: later changes to these parts are ignored until the parts are written again.
   */
  takeLoss(): OwnershipLoss | undefined {
    const parts = this.#lost();
    if (parts.length === 0) return undefined;
    this.#repairs.count();
    const fields = parts.map((part) =>
      lostFields(fieldSet(this.#expected.get(part)?.fields), fieldSet(this.#seen?.get(part)?.fields)),
    );
    for (const part of parts) this.#expected.delete(part);
    return { parts, fields, others: this.#others };
  }

  #lost(): ApplyPart[] {
    return applyParts.filter((part) => {
      const expected = this.#expected.get(part);
      const seen = this.#seen?.get(part);
      if (!expected || !seen) return false;
      if (seen.fields !== expected.fields || seen.time > expected.time) return true;
      // The watch event of an earlier write of the agent has older values.
      return seen.time === expected.time && !sameJson(seen.values, expected.values);
    });
  }

  #ownedIn(object: KubeObject, part: ApplyPart): Owned {
    const manager = this.#fieldManager;
    return {
      fields: ownedFields(object, manager, part),
      time: appliedTime(object, manager, part),
      values: appliedValues(object, manager, part),
    };
  }
}

function fieldSet(text: string | undefined): JsonObject {
  return text ? (JSON.parse(text) as JsonObject) : {};
}
