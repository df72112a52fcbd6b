const PATIENCE_MS = 10_000;
const PAUSE_MS = 10;
const LONGEST_EXPLANATION = 4_000;

/**
 * Asks again until the answer is neither false, null nor undefined, and gives it. Throws after ten seconds, or
 * `patienceMs`, with what was waited for and what `explain` says then. An error of `look` counts as "not yet".
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  options: { patienceMs?: number; explain?: () => unknown } = {},
): Promise<Exclude<T, false | null | undefined>> {
  const end = performance.now() + (options.patienceMs ?? PATIENCE_MS);
  let trouble: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found !== false && found !== null && found !== undefined)
        return found as Exclude<T, false | null | undefined>;
      trouble = undefined;
    } catch (error) {
      trouble = error;
    }
    if (performance.now() > end) {
      const explained = options.explain
        ? `\n${cut(JSON.stringify(await options.explain(), undefined, 2))}`
        : "";
      throw new Error(`waited in vain: ${what}${explained}`, { cause: trouble });
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function cut(text = "nothing"): string {
  return text.length > LONGEST_EXPLANATION ? `${text.slice(0, LONGEST_EXPLANATION)}...` : text;
}
