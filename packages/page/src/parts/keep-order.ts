/**
 * The order in which rows are shown. Sorted; or, while a reader holds it, the order of before with what is new at the end
 * and without what is no longer there, so that no row jumps under the pointer or away from the keyboard's focus.
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
