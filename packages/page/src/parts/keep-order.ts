/**
 * Returns the order in which rows are shown: sorted, or, while a reader holds it, the previous order with new rows at
 * the end and without removed ones, so that no row moves under the pointer or loses the keyboard focus.
 */
export function keepOrder(
  before: readonly string[],
  sorted: readonly string[],
  isHeld: boolean,
): readonly string[] {
  if (!isHeld) return sorted;
  const present = new Set(sorted);
  const known = new Set(before);
  return [...before.filter((key) => present.has(key)), ...sorted.filter((key) => !known.has(key))];
}
