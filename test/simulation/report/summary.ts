import { createHash } from "node:crypto";
import type { Outcome } from "../simulate.ts";

type Counted = Omit<Outcome, "events" | "log">;

/** All worlds of a run as text. */
export function summaryOf(outcomes: readonly Counted[], tookMs: number): string {
  const sum = (of: (outcome: Counted) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const hours = sum(({ virtualMs }) => virtualMs) / 3_600_000;
  const faults = new Map<string, number>();
  for (const { faults: counts } of outcomes)
    for (const [name, count] of Object.entries(counts)) faults.set(name, (faults.get(name) ?? 0) + count);
  const counted = [...faults].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => `${name} ${count}`);
  const failed = outcomes.filter(({ broken }) => broken.length > 0);
  const promises = Map.groupBy(
    failed.flatMap(({ seed, broken }) =>
      [...new Set(broken.map(({ promise }) => promise))].map((promise) => ({ promise, seed })),
    ),
    ({ promise }) => promise,
  );
  return [
    `${outcomes.length} worlds, ${hours.toFixed(1)} virtual hours in ${(tookMs / 1_000).toFixed(1)} s: ` +
      `${((hours / tookMs) * 1_000).toFixed(2)} virtual hours per second, ${sum(({ steps }) => steps)} steps`,
    `agents started ${sum(({ lives }) => lives)}, evictions ${sum(({ evictions }) => evictions)}`,
    `faults: ${counted.join(", ") || "none"}`,
    ...[...promises].map(([promise, found]) => {
      const seeds = found.map(({ seed }) => seed).slice(0, 10);
      return `broken in ${found.length} worlds (seeds ${seeds.join(", ")}${found.length > 10 ? ", ..." : ""}): ${promise}`;
    }),
    `digest of all worlds: ${digestOf(outcomes)}`,
    `${failed.length} of ${outcomes.length} worlds broke a rule`,
  ].join("\n");
}

function digestOf(outcomes: readonly Counted[]): string {
  const hash = createHash("sha256");
  for (const { seed, digest } of [...outcomes].sort((a, b) => a.seed - b.seed))
    hash.update(`${seed} ${digest}\n`);
  return hash.digest("hex").slice(0, 16);
}
