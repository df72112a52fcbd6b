import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";
import { hasShortWords, isShort } from "./short-words.ts";

/** Severity of a badge. */
export type Tone = "ok" | "warn" | "bad" | "quiet";

/** A highlighted word or two, with the icon of its severity. The color only reinforces them. */
export function Badge({ tone = "quiet", children }: { tone?: Tone; children: ComponentChildren }) {
  const wrapping = isShort(children) ? "one-line" : hasShortWords(children) ? "short" : "";
  return (
    <span class={`badge ${tone} ${wrapping}`}>
      <Icon name={tone} />
      {children}
    </span>
  );
}
