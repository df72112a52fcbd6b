/** Returns the grid cell that a key moves to. Undefined if the key does not move. */
export function moveTo(key: string, from: number, count: number, columns: number): number | undefined {
  const to = destination(key, from, count, columns);
  return to === undefined ? undefined : Math.min(Math.max(to, 0), count - 1);
}

function destination(key: string, from: number, count: number, columns: number): number | undefined {
  switch (key) {
    case "ArrowRight":
      return from + 1;
    case "ArrowLeft":
      return from - 1;
    case "ArrowDown":
      return from + columns < count ? from + columns : from;
    case "ArrowUp":
      return from - columns >= 0 ? from - columns : from;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}
