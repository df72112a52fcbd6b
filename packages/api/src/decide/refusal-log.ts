import { type RefusalReason, refusalReasons } from "../reasons/index.ts";
import { compareText } from "../text/index.ts";
import type { Refusal } from "./decision.ts";
import { type PodReference, referenceTo } from "./pods.ts";

// Bounds the records if a plugin requests many pods that can't be evicted.
const MAX_REFUSALS_PER_PLUGIN = 200;

/** Collects refusals. Counts all of them and keeps the first 200 of each plugin. */
export class RefusalLog {
  readonly #counts = new Map<RefusalReason, number>();
  readonly #kept: Refusal[] = [];
  readonly #numbers = new Map<string, number>();

  /**
   * Adds a refusal. Call in a deterministic order, because only the first ones are kept.
   * @param detail replaces the reason's text
   */
  add(plugin: string, pod: PodReference, reason: RefusalReason, detail?: string): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    const number = (this.#numbers.get(plugin) ?? 0) + 1;
    this.#numbers.set(plugin, number);
    if (number > MAX_REFUSALS_PER_PLUGIN) return;
    this.#kept.push({ ...referenceTo(pod), plugin, reason, message: detail ?? refusalReasons[reason] });
  }

  /** Returns the number of refusals by reason, sorted by reason. */
  sortedCounts(): Partial<Record<RefusalReason, number>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => compareText(a, b)));
  }

  /** Returns the kept refusals, sorted by plugin and pod. */
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
