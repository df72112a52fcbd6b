/** The items of a list as it is typed: separated by commas. */
export function itemsOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** The list with an item added at its end, or without it. */
export function toggled(text: string, item: string): string {
  const items = itemsOf(text);
  const others = items.filter((each) => each !== item);
  return (others.length < items.length ? others : [...items, item]).join(",");
}
