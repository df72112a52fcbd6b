import type { ComponentChildren } from "preact";

/** Severity of a badge. */
export type Tone = "ok" | "warn" | "bad" | "quiet";

/** A highlighted word or two. The color only reinforces the words. */
export function Badge({ tone = "quiet", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
