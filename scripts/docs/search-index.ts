// What the site's search knows: a section for each heading of each page.
import type { MarkdownPage } from "./markdown.ts";

/** A section of a page, from its heading to the next. */
export interface Section {
  /** Of the page. */
  page: string;
  /** Empty for what stands before the second heading. */
  heading: string;
  /** In the site: "install.html#uninstalling". */
  address: string;
  text: string;
}

/**
 * Returns the sections of a page.
 * @param address of the page in the site
 */
export function sectionsOf({ title, headings }: MarkdownPage, address: string): Section[] {
  return headings.map(({ id, text, below }, at) => ({
    page: title,
    heading: at === 0 ? "" : text,
    address: at === 0 ? address : `${address}#${id}`,
    text: wordsOf(below),
  }));
}

/** Without the marks of Markdown, which nobody searches for. */
function wordsOf(markdown: string): string {
  return markdown
    .replace(/^\s*```.*$/gm, "")
    .replace(/\]\([^)]*\)/g, "")
    .replace(/^\s*\|[-| ]+\|$/gm, "")
    .replace(/[`*|[\]]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
}

/** Returns the script that gives the sections to `search.js`: a page that is opened from a file may not fetch. */
export function searchIndexScript(sections: readonly Section[]): string {
  return `globalThis.sections = ${JSON.stringify(sections)};\n`;
}
