import { createHash } from "node:crypto";
import type { Outcome } from "../simulate.ts";

/** An outcome without its plan and without what happened. */
export type Counted = Omit<Outcome, "plan" | "events" | "log">;

interface Finding {
  worlds: number;
  /** The first that were found. */
  seeds: number[];
}

const MOST_SEEDS = 10;

/** What is known of all worlds of a run. Its size does not depend on their number. */
export class Tally {
  worlds = 0;
  /** Worlds that broke a rule. */
  failed = 0;
  #virtualMs = 0;
  #steps = 0;
  #lives = 0;
  #evictions = 0;
  #digest = 0n;
  readonly #faults = new Map<string, number>();
  readonly #findings = new Map<string, Finding>();

  /** Counts a world. The totals and the digest do not depend on the order of the calls, but the listed seeds do. */
  add({ seed, digest, broken, virtualMs, steps, lives, evictions, faults }: Counted): void {
    this.worlds++;
    this.#virtualMs += virtualMs;
    this.#steps += steps;
    this.#lives += lives;
    this.#evictions += evictions;
    for (const [name, count] of Object.entries(faults))
      this.#faults.set(name, (this.#faults.get(name) ?? 0) + count);
    this.#digest = BigInt.asUintN(64, this.#digest + numberOf(`${seed} ${digest}`));
    if (broken.length === 0) return;
    this.failed++;
    for (const promise of new Set(broken.map((each) => each.promise))) {
      const finding = this.#findings.get(promise) ?? { worlds: 0, seeds: [] };
      this.#findings.set(promise, finding);
      finding.worlds++;
      if (finding.seeds.length < MOST_SEEDS) finding.seeds.push(seed);
    }
  }

  /**
   * One line for a run that goes on.
   * @param seeds number of worlds that are to run
   * @param tookMs milliseconds since the first began
   */
  progress(seeds: number, tookMs: number): string {
    const leftMinutes = (tookMs / this.worlds) * ((seeds - this.worlds) / 60_000);
    const left = this.worlds === 0 ? "" : `, about ${Math.ceil(leftMinutes)} min left`;
    return `${this.worlds} of ${seeds} worlds, ${this.failed} broke a rule, ${this.#speed(tookMs)}${left}`;
  }

  /** The run as text. */
  summary(tookMs: number): string {
    const inOrder = [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1));
    const injected = inOrder.reduce((sum, [, count]) => sum + count, 0);
    const hours = this.#virtualMs / 3_600_000;
    return [
      `${this.worlds} worlds, ${hours.toFixed(1)} virtual hours in ${(tookMs / 1_000).toFixed(1)} s: ` +
        `${this.#speed(tookMs)}, ${this.#steps} steps`,
      `agents started ${this.#lives}, evictions ${this.#evictions}`,
      `${injected} faults injected: ${inOrder.map(([name, count]) => `${name} ${count}`).join(", ") || "none"}`,
      ...[...this.#findings].map(([promise, { worlds, seeds }]) => {
        const named = seeds.toSorted((a, b) => a - b).join(", ");
        return `broken in ${worlds} worlds (seeds ${named}${worlds > seeds.length ? ", ..." : ""}): ${promise}`;
      }),
      `digest of all worlds: ${this.#digest.toString(16).padStart(16, "0")}`,
      `${this.failed} of ${this.worlds} worlds broke a rule`,
    ].join("\n");
  }

  #speed(tookMs: number): string {
    const hours = this.#virtualMs / 3_600_000;
    return `${((hours / tookMs) * 1_000).toFixed(2)} virtual hours per second`;
  }
}

function numberOf(text: string): bigint {
  return createHash("sha256").update(text).digest().readBigUInt64BE();
}
