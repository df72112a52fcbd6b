const NAMES = ["text", "quiet", "ground", "raised", "edge", "line", "ok", "warn", "bad"] as const;

/** The page's colors for drawing on canvases, from system.css for the current color scheme. */
export type Colours = Record<(typeof NAMES)[number], string>;

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const entries = NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim() || "gray"]);
  return Object.fromEntries(entries) as Colours;
}
