// The HTML around a page.
import type { PageGroup } from "./pages.ts";

export interface Layout {
  title: string;
  /** The page's own HTML. */
  body: string;
  /** Where this page is in the site: "contributing/architecture.html". */
  at: string;
  groups: readonly PageGroup[];
  /** Of a listed page. */
  addressOf: (path: string) => string;
}

/** A whole page. It loads the style sheet beside it and nothing else: its policy forbids the browser the rest. */
export function pageHtml({ title, body, at, groups, addressOf }: Layout): string {
  const up = "../".repeat(at.split("/").length - 1);
  const link = (address: string, text: string) =>
    `<a href="${up}${address}"${address === at ? ' aria-current="page"' : ""}>${escapeHtml(text)}</a>`;
  const sections = groups.map(
    ({ title, pages }) =>
      `<h2>${escapeHtml(title)}</h2>\n<ul>\n${pages.map((page) => `<li>${link(addressOf(page.path), page.title)}</li>`).join("\n")}\n</ul>`,
  );
  const listed = groups.flatMap(({ pages }) => pages);
  const position = listed.findIndex(({ path }) => addressOf(path) === at);
  const [before, after] = position < 0 ? [] : [listed[position - 1], listed[position + 1]];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:">
<title>${escapeHtml(title)} · Nodekeeper</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${up}style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<nav aria-label="Pages">
<p>${link("index.html", "Nodekeeper")}</p>
${sections.join("\n")}
</nav>
<main id="content">
${body}
<footer>
${before ? `<span>← ${link(addressOf(before.path), before.title)}</span>` : "<span></span>"}
${after ? `<span>${link(addressOf(after.path), after.title)} →</span>` : ""}
</footer>
</main>
</body>
</html>
`;
}

/** Text for HTML, also within quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
