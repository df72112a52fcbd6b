/**
 * Whether a text has the form of a pattern: "*" stands for any characters, "?" for one, all others for themselves. The
 * time is bounded by the product of the lengths, whatever the pattern.
 */
export function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (pattern[next] === "*") {
      star = next++;
      resume = at;
    } else if (next < pattern.length && (pattern[next] === "?" || pattern[next] === text[at])) {
      next++;
      at++;
    } else if (star >= 0) {
      // The last star takes one character more; earlier ones need no second try.
      next = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[next] === "*") next++;
  return next === pattern.length;
}
