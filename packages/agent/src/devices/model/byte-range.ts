/** How many bytes are the same at the start and at the end of two texts; both together are at most the shorter one. */
export function commonEnds(a: Uint8Array, b: Uint8Array): { prefix: number; suffix: number } {
  const shorter = Math.min(a.length, b.length);
  const prefix = longestEqual(shorter, (from, to) => isEqual(a, from, to, b, from, to));
  const suffix = longestEqual(shorter - prefix, (from, to) =>
    isEqual(a, a.length - to, a.length - from, b, b.length - to, b.length - from),
  );
  return { prefix, suffix };
}

// The longest length whose whole is equal, by halving: each comparison is one call of memcmp.
function longestEqual(length: number, isEqualIn: (from: number, to: number) => boolean): number {
  let known = 0;
  let bound = length;
  while (known < bound) {
    const middle = bound - known <= 64 ? known + 1 : (known + bound) >> 1;
    if (isEqualIn(known, middle)) known = middle;
    else if (middle === known + 1) return known;
    else bound = middle;
  }
  return known;
}

function isEqual(
  a: Uint8Array,
  aFrom: number,
  aTo: number,
  b: Uint8Array,
  bFrom: number,
  bTo: number,
): boolean {
  // One byte needs no call.
  if (aTo - aFrom === 1) return a[aFrom] === b[bFrom];
  return Buffer.compare(a.subarray(aFrom, aTo), b.subarray(bFrom, bTo)) === 0;
}
