/** Returns the first items that have at most this size together, at least one. */
export function fittingInto<Item>(
  bytes: number,
  items: readonly Item[],
  sizeOf: (item: Item) => number,
): readonly Item[] {
  let sum = 0;
  const over = items.findIndex((item, place) => {
    sum += sizeOf(item);
    return place > 0 && sum > bytes;
  });
  return over < 0 ? items : items.slice(0, over);
}
