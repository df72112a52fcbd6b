import type { Health } from "./groups.ts";
import { healthText } from "./words.ts";

const marks: Record<Health, string> = { failing: "✕", impaired: "△", changing: "…", healthy: "✓" };

/** A health as a mark and a word, colored. */
export function HealthMark({ health }: { health: Health }) {
  return (
    <span class={`health ${health}`}>
      <span aria-hidden="true">{marks[health]}</span> {healthText[health]}
    </span>
  );
}
