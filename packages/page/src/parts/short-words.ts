import type { ComponentChildren } from "preact";
import { isValidElement } from "preact";
import { Prose } from "./prose.tsx";

const MOST_CHARACTERS = 20;

/** Returns whether no word of a content is so long that it must be broken to fit a narrow column. */
export function hasShortWords(content: ComponentChildren): boolean {
  const words = textOf(content)?.split(/\s/) ?? [];
  return words.length > 0 && words.every((word) => word.length <= MOST_CHARACTERS);
}

/** Returns whether a content is so short that it fits on one line. */
export function isShort(content: ComponentChildren): boolean {
  const text = textOf(content);
  return text !== undefined && text.length <= MOST_CHARACTERS;
}

/** Returns the text of a content. Undefined if it includes a component that renders its own text. */
function textOf(content: ComponentChildren): string | undefined {
  if (typeof content === "string" || typeof content === "number") return String(content);
  if (Array.isArray(content)) {
    const texts = content.map(textOf);
    return texts.includes(undefined) ? undefined : texts.join("");
  }
  if (!isValidElement(content)) return "";
  const { type, props } = content;
  // A line may end here.
  if (type === "wbr") return " ";
  if (type === Prose) return textOf((props as unknown as Parameters<typeof Prose>[0]).text);
  return props.children === undefined && typeof type === "function" ? undefined : textOf(props.children);
}
