import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { type Clock, RepairPace, retryPolicies, type Timer } from "@nodekeeper/core/lib";
import { type ApplyPart, applyParts } from "./bodies.ts";
import { lostFields } from "./contests.ts";
import type { JsonObject } from "./json.ts";
import { ownedFields } from "./owned-values.ts";

// Our own write may be on its way through the watch: a difference is believed when it lasts.
const BELIEVE_AFTER_MS = 400;

export interface OwnershipOptions {
  fieldManager: string;
  clock: Clock;
  /** Another client changed or removed fields of these parts. */
  onLost: (loss: OwnershipLoss) => void;
}

/** What another client took. */
export interface OwnershipLoss {
  parts: readonly ApplyPart[];
  /** Field sets, as fieldsV1. */
  fields: readonly JsonObject[];
  /** What the object's managedFields say of others. */
  others: readonly ManagedFieldsEntry[];
}

/**
 * Watches over the fields that we own of one object: compares the field sets of our managedFields entries as the
 * server keeps them with those it answered to our last writes. Who changes a field of ours takes it from our set.
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

  /** Takes the server's answer to a write of ours. */
  wrote(part: ApplyPart, answer: KubeObject): void {
    this.#expected.set(part, ownedFields(answer, this.#options.fieldManager, part));
  }

  /** Takes the object as the watch tells it; undefined: it is gone. */
  saw(object: KubeObject | undefined): void {
    const { fieldManager, clock } = this.#options;
    this.#seen = new Map(
      applyParts.map((part) => [part, object ? ownedFields(object, fieldManager, part) : ""]),
    );
    this.#others = (object?.metadata.managedFields ?? []).filter(({ manager }) => manager !== fieldManager);
    if (this.#timer || this.#lost().length === 0) return;
    this.#timer = clock.after(BELIEVE_AFTER_MS + this.#repairs.delayMs, () => this.#judge());
  }

  /** Ends a judgement that is due. */
  close(): void {
    this.#timer?.cancel();
  }

  #judge(): void {
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
