/**
 * Returns whether a text matches a pattern: "*" matches any characters, "?" matches one, and all others match
 * themselves. The time is bounded by the product of the lengths for any pattern.
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
      // The last star matches one more character. Earlier ones need no retry.
      next = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[next] === "*") next++;
  return next === pattern.length;
}
