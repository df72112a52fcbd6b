import axe from "axe-core";
import type { Page } from "playwright-core";

const MOST_STOPS = 2_000;

/** Serious and critical violations of accessibility rules in what is shown, one line each. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // Runs past the content security policy, which a script element would not.
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { run } = (globalThis as unknown as { axe: typeof axe }).axe;
    return (await run(document, { resultTypes: ["violations"] })).violations;
  });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
    );
}

/** How much wider the page is than its window, CSS pixels; 0 where it does not scroll sideways. Names what sticks out. */
export function overflow(page: Page): Promise<{ pixels: number; of: string[] }> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const pixels = Math.max(scrollWidth - clientWidth, 0);
    if (pixels === 0) return { pixels, of: [] };
    const wide = [...document.querySelectorAll("body *")].filter(
      (element) => element.getBoundingClientRect().right > clientWidth + 1,
    );
    return { pixels, of: wide.slice(0, 5).map((element) => element.outerHTML.slice(0, 200)) };
  });
}

/**
 * Walks through the page by Tab, once around. Returns what a user without a mouse can't use: controls that were there from the
 * start to the end and never had the focus, and those whose focus can't be seen. What is sorted again meanwhile may have been
 * passed by: where something is missed, it walks again, three times in all.
 */
export async function keyboardProblems(page: Page): Promise<string[]> {
  let problems: string[] = [];
  for (let walk = 0; walk < 3; walk++) {
    await page.evaluate(watchFocus);
    for (let stops = 0; stops < MOST_STOPS; stops++) {
      await page.keyboard.press("Tab");
      // After the last control the document itself has the focus.
      if (await page.evaluate(() => globalThis.focusWatch.isAround())) break;
    }
    problems = await page.evaluate(() => globalThis.focusWatch.problems());
    if (problems.length === 0) break;
  }
  return problems;
}

interface FocusWatch {
  /** Takes note of what has the focus. */
  isAround(): boolean;
  problems(): string[];
}

declare global {
  var focusWatch: FocusWatch;
}

function watchFocus(): void {
  const controls = "a[href], button, input, select, textarea, summary, [tabindex]";
  const isUsable = (element: Element) =>
    element.checkVisibility({ visibilityProperty: true }) &&
    !(element as HTMLButtonElement).disabled &&
    (element as HTMLElement).tabIndex >= 0 &&
    // Of a group of radio buttons Tab reaches the chosen one.
    !(element.matches("input[type=radio]") && !(element as HTMLInputElement).checked);
  const described = (element: Element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 160);
  const atStart = new Set([...document.querySelectorAll(controls)].filter(isUsable));
  const reached = new Set<Element>();
  const unseen = new Set<string>();
  let last: Element | undefined;
  (document.activeElement as HTMLElement | null)?.blur();
  globalThis.focusWatch = {
    isAround() {
      const element = document.activeElement;
      // Where the walk begins depends on what had the focus before: it may begin behind the last control.
      if (!element || element === document.body) return reached.size > 0;
      // A field of a date has a stop for each of its parts.
      if (element === last) return false;
      last = element;
      if (reached.has(element)) return true;
      reached.add(element);
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
      const hasOutline = outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0;
      if (!hasOutline && boxShadow === "none") unseen.add(`focus can't be seen: ${described(element)}`);
      return false;
    },
    problems() {
      const missed = [...atStart].filter(
        (element) => element.isConnected && isUsable(element) && !reached.has(element),
      );
      return [...unseen, ...missed.map((element) => `Tab does not reach: ${described(element)}`)];
    },
  };
}
