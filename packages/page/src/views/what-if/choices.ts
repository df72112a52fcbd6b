/** Splits a typed comma-separated list into items. */
export function itemsOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Returns the list with an item appended, or removed if present. */
export function toggled(text: string, item: string): string {
  const items = itemsOf(text);
  const others = items.filter((each) => each !== item);
  return (others.length < items.length ? others : [...items, item]).join(",");
}
