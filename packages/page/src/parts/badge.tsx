import type { ComponentChildren } from "preact";

/** How good or bad the news of a badge is. */
export type Tone = "ok" | "warn" | "bad" | "quiet";

/** A word or two that stand out. The colour only underlines the words. */
export function Badge({ tone = "quiet", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
