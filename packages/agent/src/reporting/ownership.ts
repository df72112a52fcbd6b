import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { type Clock, RepairPace, retryPolicies } from "@nodekeeper/core/lib";
import { type ApplyPart, applyParts } from "./bodies.ts";
import { lostFields } from "./contests.ts";
import type { JsonObject } from "./json.ts";
import { ownedFields } from "./owned-values.ts";

// The watch event of the agent's own write may be delayed. Only a difference that persists this long counts.
const CONFIRM_AFTER_MS = 400;

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
 * watch events with those in the responses to its last writes. A client that changes a field removes it from the
 * agent's set.
 */
export class Ownership {
  readonly #fieldManager: string;
  readonly #expected = new Map<ApplyPart, string>();
  #seen: ReadonlyMap<ApplyPart, string> | undefined;
  #others: readonly ManagedFieldsEntry[] = [];
  readonly #repairs: RepairPace;

  constructor(fieldManager: string, clock: Clock) {
    this.#fieldManager = fieldManager;
    this.#repairs = new RepairPace(clock, retryPolicies.objectRepair);
  }

  /** Records the response to a write of the agent. */
  wrote(part: ApplyPart, answer: KubeObject): void {
    this.#expected.set(part, ownedFields(answer, this.#fieldManager, part));
  }

  /**
   * Records the object of a watch event. `object` is undefined if it was deleted. Returns the delay after which to call
   * `takeLoss`, in milliseconds. Undefined if the agent owns what it wrote.
   */
  saw(object: KubeObject | undefined): number | undefined {
    this.#seen = new Map(
      applyParts.map((part) => [part, object ? ownedFields(object, this.#fieldManager, part) : ""]),
    );
    const entries = object?.metadata.managedFields ?? [];
    this.#others = entries.filter(({ manager }) => manager !== this.#fieldManager);
    return this.#lost().length === 0 ? undefined : CONFIRM_AFTER_MS + this.#repairs.delayMs;
  }

  /** Returns the fields that another client changed or removed, and counts their repair. Undefined if there are none. */
  takeLoss(): OwnershipLoss | undefined {
    const parts = this.#lost();
    if (parts.length === 0) return undefined;
    this.#repairs.count();
    const fields = parts.map((part) =>
      lostFields(fieldSet(this.#expected.get(part)), fieldSet(this.#seen?.get(part))),
    );
    return { parts, fields, others: this.#others };
  }

  #lost(): ApplyPart[] {
    return applyParts.filter((part) => {
      const expected = this.#expected.get(part);
      return expected && this.#seen?.get(part) !== expected;
    });
  }
}

function fieldSet(text: string | undefined): JsonObject {
  return text ? (JSON.parse(text) as JsonObject) : {};
}
