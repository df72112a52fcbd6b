const NAMES = ["text", "quiet", "ground", "raised", "edge", "line", "ok", "warn", "bad"] as const;

/** The page's colours for drawing on canvases, as main.css has them for the light or dark scheme of now. */
export type Colours = Record<(typeof NAMES)[number], string>;

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const entries = NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim() || "gray"]);
  return Object.fromEntries(entries) as Colours;
}
