import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";

/** Severity of a badge. */
export type Tone = "ok" | "warn" | "bad" | "quiet";

/** A highlighted word or two, with the icon of its severity. The color only reinforces them. */
export function Badge({ tone = "quiet", children }: { tone?: Tone; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <Icon name={tone} />
      {children}
    </span>
  );
}
