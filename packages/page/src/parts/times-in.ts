const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z/g;

/** Splits a sentence into text and times, milliseconds since the epoch. */
export function timesIn(sentence: string): (string | number)[] {
  const pieces: (string | number)[] = [];
  let end = 0;
  for (const { 0: iso, index } of sentence.matchAll(ISO_TIME)) {
    const ms = Date.parse(iso);
    if (Number.isNaN(ms)) continue;
    if (index > end) pieces.push(sentence.slice(end, index));
    pieces.push(ms);
    end = index + iso.length;
  }
  if (end < sentence.length) pieces.push(sentence.slice(end));
  return pieces;
}
