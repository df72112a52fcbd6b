import { Badge, type Tone } from "../../parts/badge.tsx";
import type { Health } from "./groups.ts";
import { healthText } from "./words.ts";

const tones: Readonly<Record<Health, Tone>> = {
  failing: "bad",
  impaired: "warn",
  changing: "quiet",
  healthy: "ok",
};

/** A health as a badge. */
export function HealthMark({ health }: { health: Health }) {
  return <Badge tone={tones[health]}>{healthText[health]}</Badge>;
}
