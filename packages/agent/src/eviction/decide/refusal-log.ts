import type { Refusal } from "./decision.ts";
import type { PodReference } from "./pods.ts";
import { compareText } from "./rank.ts";
import { type RefusalReason, refusalReasons } from "./refusals.ts";

// A plugin that asks for what it can't have, a thousand times a round, must not fill the records.
const MAX_REFUSALS_PER_PLUGIN = 200;

/** Collects refusals: counts all, keeps a bounded number for each plugin. */
export class RefusalLog {
  readonly #counts = new Map<RefusalReason, number>();
  readonly #kept: Refusal[] = [];
  readonly #numbers = new Map<string, number>();

  /** `detail` stands for the reason's usual text. Call in a fixed order, for the first refusals are the ones kept. */
  add(plugin: string, pod: PodReference, reason: RefusalReason, detail?: string): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    const number = (this.#numbers.get(plugin) ?? 0) + 1;
    this.#numbers.set(plugin, number);
    if (number > MAX_REFUSALS_PER_PLUGIN) return;
    const { uid, namespace, name } = pod;
    this.#kept.push({ uid, namespace, name, plugin, reason, message: detail ?? refusalReasons[reason] });
  }

  /** How many there were for each reason, sorted by reason. */
  sortedCounts(): Partial<Record<RefusalReason, number>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => compareText(a, b)));
  }

  /** What is kept, by plugin and pod. */
  sorted(): Refusal[] {
    return [...this.#kept].sort(
      (a, b) =>
        compareText(a.plugin, b.plugin) ||
        compareText(a.namespace, b.namespace) ||
        compareText(a.name, b.name) ||
        compareText(a.uid, b.uid) ||
        compareText(a.reason, b.reason) ||
        compareText(a.message, b.message),
    );
  }
}
