import { useRef } from "preact/hooks";

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

const READING_MS = 5_000;

/**
 * Returns the order of rows, held while the keyboard focus is among them and for five seconds after the pointer moved
 * over them. `reading` has the event handlers for the element around the rows.
 */
export function useHeldOrder(sorted: readonly string[]) {
  const order = useRef<readonly string[]>([]);
  const isFocused = useRef(false);
  const movedAt = useRef(Number.NEGATIVE_INFINITY);
  const isHeld = isFocused.current || performance.now() - movedAt.current < READING_MS;
  order.current = keepOrder(order.current, sorted, isHeld);
  const reading = {
    onFocusIn: () => {
      isFocused.current = true;
    },
    onFocusOut: () => {
      isFocused.current = false;
    },
    onPointerMove: () => {
      movedAt.current = performance.now();
    },
  };
  return { order: order.current, reading };
}
