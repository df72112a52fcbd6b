// Mermaid diagrams become SVG while the site is built: pages load no script.
import { renderMermaidSVG } from "beautiful-mermaid";

/** The SVG of a Mermaid diagram, to be put into a page. Throws where it can't be drawn. */
export function diagramSvg(source: string): string {
  const svg = renderMermaidSVG(source, {
    ...{ bg: "var(--page)", fg: "var(--text)" },
    ...{ font: "system-ui", transparent: true, padding: 8 },
  });
  // The library has each diagram load a font from elsewhere.
  return svg.replace(/@import url\([^)]*\);/g, "");
}
