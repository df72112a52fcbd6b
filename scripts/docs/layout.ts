// The HTML around a page.
import type { PageGroup } from "./pages.ts";

export interface Layout {
  title: string;
  /** The page's own HTML. */
  body: string;
  /** Its sections, for the contents of the page. Default: none. */
  contents?: readonly { id: string; text: string }[];
  /** Where this page is in the site: "contributing/architecture.html". */
  at: string;
  groups: readonly PageGroup[];
  /** Of a listed page. */
  addressOf: (path: string) => string;
}

// With fewer, a reader sees them anyway.
const FEWEST_CONTENTS = 3;

/** A whole page. It loads what is beside it and nothing else: its policy forbids the browser the rest. */
export function pageHtml({ title, body, contents = [], at, groups, addressOf }: Layout): string {
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
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:">
<title>${escapeHtml(title)} · Nodekeeper</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${up}style.css">
<script defer src="${up}search.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<div class="sidebar">
<header>
<p>${link("index.html", "Nodekeeper")}</p>
<search id="searching" hidden>
<input id="search" type="search" placeholder="Search  ( / )" aria-label="Search the documentation" autocomplete="off">
<p id="result-count" role="status"></p>
<ul id="results"></ul>
</search>
</header>
<nav aria-label="Pages">
${sections.join("\n")}
</nav>
</div>
<main id="content">
${body}
<footer>
${before ? `<span>← ${link(addressOf(before.path), before.title)}</span>` : "<span></span>"}
${after ? `<span>${link(addressOf(after.path), after.title)} →</span>` : ""}
</footer>
</main>
${contentsHtml(contents)}
</body>
</html>
`;
}

function contentsHtml(contents: NonNullable<Layout["contents"]>): string {
  if (contents.length < FEWEST_CONTENTS) return "";
  const items = contents.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`);
  return `<nav class="contents" aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n${items.join("\n")}\n</ul>\n</nav>`;
}

/** Text for HTML, also within quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
