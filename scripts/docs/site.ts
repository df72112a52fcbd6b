// The documentation as a directory of HTML.
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, normalize, relative } from "node:path";
import { renderMermaidSVG } from "beautiful-mermaid";
import { Marked, type Token, type Tokens } from "marked";
import { escapeHtml, pageHtml } from "./layout.ts";
import { type MarkdownPage, readMarkdown } from "./markdown.ts";
import { groupsOf, INDEX, type PageGroup } from "./pages.ts";
import { type Section, searchIndexScript, sectionsOf } from "./search-index.ts";

// More of a file is nothing to read in a browser.
const LARGEST_FILE = 256 * 1024;

/**
 * Writes the pages that docs/index.md lists, and each file of the repository at `root` that they link to, to `out`,
 * which is replaced. Returns the addresses of all written pages in the site. Throws if a diagram can't be rendered.
 */
export async function buildSite(root: string, out: string): Promise<string[]> {
  const groups = groupsOf(await readFile(join(root, INDEX), "utf8"));
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  for (const file of ["style.css", "search.js"]) await cp(join(import.meta.dirname, file), join(out, file));
  const images = join(root, "docs/images");
  if (existsSync(images)) await cp(images, join(out, "images"), { recursive: true });
  // Pages, then what they link to.
  const listed = groups.flatMap(({ pages }) => pages.map(({ path }) => path));
  const queue = [INDEX, ...listed];
  const sections: Section[] = [];
  const done = new Map<string, string>();
  const want = async (path: string) => {
    const address = addressOf(path, (await stat(join(root, path))).isDirectory());
    if (!done.has(path) && !queue.includes(path)) queue.push(path);
    return address;
  };
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const { address, html, page } = await render(root, path, groups, want);
    done.set(path, address);
    if (page && listed.includes(path)) sections.push(...sectionsOf(page, address));
    await mkdir(dirname(join(out, address)), { recursive: true });
    await writeFile(join(out, address), html);
  }
  await writeFile(join(out, "search-index.js"), searchIndexScript(sections));
  return [...done.values()];
}

/** Where the site has a file or directory of the repository. */
export function addressOf(path: string, isDirectory = false): string {
  const place = path.startsWith("docs/") ? path.slice("docs/".length) : join("repository", path);
  if (isDirectory) return join(place, "index.html");
  return place.endsWith(".md") ? place.replace(/\.md$/, ".html") : `${place}.html`;
}

type Want = (path: string) => Promise<string>;

interface Rendered {
  address: string;
  html: string;
  /** Of Markdown. */
  page?: MarkdownPage;
}

async function render(
  root: string,
  path: string,
  groups: readonly PageGroup[],
  want: Want,
): Promise<Rendered> {
  const isDirectory = (await stat(join(root, path))).isDirectory();
  const at = addressOf(path, isDirectory);
  const layout = { at, groups, addressOf: (listed: string) => addressOf(listed) };
  if (isDirectory) {
    const body = await directoryHtml(root, path, at, want);
    return { address: at, html: pageHtml({ title: path, body, ...layout }) };
  }
  const text = await readFile(join(root, path), "utf8");
  if (path.endsWith(".md")) {
    const page = readMarkdown(text);
    const contents = page.headings.filter(({ depth }) => depth === 2);
    const body = await markdownHtml(page, path, at, want);
    return { address: at, html: pageHtml({ title: page.title, body, contents, ...layout }), page };
  }
  const shown = text.length > LARGEST_FILE ? `${text.slice(0, LARGEST_FILE)}\n…` : text;
  const body = `<h1>${escapeHtml(path)}</h1>\n<pre tabindex="0"><code>${escapeHtml(shown)}</code></pre>`;
  return { address: at, html: pageHtml({ title: path, body, ...layout }) };
}

async function directoryHtml(root: string, path: string, at: string, want: Want): Promise<string> {
  const entries = await readdir(join(root, path), { withFileTypes: true });
  const shown = entries.filter(({ name }) => !/^(node_modules|dist|\..*)$/.test(name));
  const rows: string[] = [];
  for (const entry of shown.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const address = await want(join(path, entry.name));
    const name = entry.isDirectory() ? `${entry.name}/` : entry.name;
    rows.push(`<li><a href="${escapeHtml(relative(dirname(at), address))}">${escapeHtml(name)}</a></li>`);
  }
  return `<h1>${escapeHtml(path)}</h1>\n<ul>\n${rows.join("\n")}\n</ul>`;
}

async function markdownHtml(page: MarkdownPage, path: string, at: string, want: Want): Promise<string> {
  const ids = page.headings.values();
  const marked = new Marked({
    renderer: {
      // Such as a badge: pages load nothing from another address.
      image: ({ text }) => escapeHtml(text),
      heading({ tokens, depth }: Tokens.Heading) {
        const { id } = ids.next().value!;
        const link = `<a class="anchor" href="#${id}" aria-label="Link to this heading">#</a>`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${link}</h${depth}>\n`;
      },
      code: ({ text, lang }) => codeHtml(text, lang ?? ""),
      table(token) {
        const cells = (row: Tokens.TableCell[], tag: string) =>
          row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("");
        const rows = token.rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("\n");
        const head = `<thead><tr>${cells(token.header, "th")}</tr></thead>`;
        return `<div class="table" tabindex="0"><table>\n${head}\n<tbody>\n${rows}\n</tbody>\n</table></div>\n`;
      },
    },
  });
  const changes = marked.walkTokens(page.tokens, async (token: Token) => {
    if (token.type === "link") token.href = await addressFrom(token.href, path, at, want);
    if (token.type === "html") token.text = withPictures(token.text, path, at);
  });
  await Promise.all(changes);
  return marked.parser(page.tokens);
}

// Pictures are in docs/images, and in images/ of the site.
function withPictures(html: string, path: string, at: string): string {
  return html.replace(/\b(src|srcset)="([^":]+)"/g, (_, name: string, target: string) => {
    const picture = relative("docs", join(dirname(path), target));
    return `${name}="${relative(dirname(at), picture)}"`;
  });
}

async function addressFrom(href: string, path: string, at: string, want: Want): Promise<string> {
  if (/^([a-z][a-z+.-]*:|#)/i.test(href)) return href;
  const [file, anchor] = href.split("#", 2) as [string, string?];
  const address = await want(normalize(join(dirname(path), decodeURI(file))).replace(/\/$/, ""));
  return relative(dirname(at), address) + (anchor ? `#${anchor}` : "");
}

function codeHtml(text: string, lang: string): string {
  const [, language, info] = /^(\S*)\s*(.*)$/.exec(lang)!;
  if (language === "mermaid") return `<figure class="diagram">${diagramSvg(text)}</figure>\n`;
  const reason = /^not-run="(.*)"$/.exec(info!)?.[1];
  const note = reason ? `<p class="note">Not run by the project's tests: ${escapeHtml(reason)}.</p>\n` : "";
  // What scrolls can be reached by the keyboard.
  return `<pre tabindex="0"><code class="language-${escapeHtml(language || "text")}">${escapeHtml(text)}\n</code></pre>\n${note}`;
}

/** Diagrams are drawn while the site is built, and need no script. */
function diagramSvg(source: string): string {
  const svg = renderMermaidSVG(source, {
    ...{ bg: "var(--page)", fg: "var(--text)" },
    ...{ font: "system-ui", transparent: true, padding: 8 },
  });
  // The library has each diagram load a font from another host.
  return svg.replace(/@import url\([^)]*\);/g, "");
}
