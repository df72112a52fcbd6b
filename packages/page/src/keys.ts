/** What a key of the keyboard belongs to. */
export type PressedKey = Pick<
  KeyboardEvent,
  "key" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey" | "target" | "preventDefault"
>;

/** Returns whether a key is the browser's, or is typed in a field, so that it must not be an action of the page. */
export function isTaken({ ctrlKey, metaKey, altKey, target }: PressedKey): boolean {
  return ctrlKey || metaKey || altKey || isField(target);
}

/** Returns what a key opens in every view. Undefined if it opens nothing. */
export function overlayOf(event: PressedKey): "search" | "keys" | undefined {
  if (isTaken(event)) return undefined;
  return event.key === "/" ? "search" : event.key === "?" ? "keys" : undefined;
}

function isField(target: EventTarget | null): boolean {
  return (
    typeof Element !== "undefined" &&
    target instanceof Element &&
    target.closest("input, select, textarea, [contenteditable]") !== null
  );
}
