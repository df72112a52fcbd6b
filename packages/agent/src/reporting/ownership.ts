import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { type Clock, RepairPace, retryPolicies, type Timer } from "@nodekeeper/core/lib";
import { type ApplyPart, applyParts } from "./bodies.ts";
import { lostFields } from "./contests.ts";
import type { JsonObject } from "./json.ts";
import { ownedFields } from "./owned-values.ts";

// The watch event of the agent's own write may be delayed. Only a difference that persists this long counts.
const CONFIRM_AFTER_MS = 400;

export interface OwnershipOptions {
  fieldManager: string;
  clock: Clock;
  /** Called when another client changed or removed fields. */
  onLost: (loss: OwnershipLoss) => void;
}

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
  readonly #options: OwnershipOptions;
  readonly #expected = new Map<ApplyPart, string>();
  #seen: ReadonlyMap<ApplyPart, string> | undefined;
  #others: readonly ManagedFieldsEntry[] = [];
  readonly #repairs: RepairPace;
  #timer: Timer | undefined;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#repairs = new RepairPace(options.clock, retryPolicies.objectRepair);
  }

  /** Records the response to a write of the agent. */
  wrote(part: ApplyPart, answer: KubeObject): void {
    this.#expected.set(part, ownedFields(answer, this.#options.fieldManager, part));
  }

  /** Records the object of a watch event. `object` is undefined if it was deleted. */
  saw(object: KubeObject | undefined): void {
    const { fieldManager, clock } = this.#options;
    this.#seen = new Map(
      applyParts.map((part) => [part, object ? ownedFields(object, fieldManager, part) : ""]),
    );
    this.#others = (object?.metadata.managedFields ?? []).filter(({ manager }) => manager !== fieldManager);
    if (this.#timer || this.#lost().length === 0) return;
    this.#timer = clock.after(CONFIRM_AFTER_MS + this.#repairs.delayMs, () => this.#check());
  }

  /** Cancels a pending check. */
  close(): void {
    this.#timer?.cancel();
  }

  #check(): void {
    this.#timer = undefined;
    const lost = this.#lost();
    if (lost.length === 0) return;
    this.#repairs.count();
    const fields = lost.map((part) =>
      lostFields(fieldSet(this.#expected.get(part)), fieldSet(this.#seen?.get(part))),
    );
    this.#options.onLost({ parts: lost, fields, others: this.#others });
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
