// What the site's search knows: a section for each heading of each page.
import { lexer } from "marked";
import { anchors, plainText } from "./markdown.ts";

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
 * Returns the sections of a Markdown page.
 * @param address of the page in the site
 */
export function sectionsOf(markdown: string, address: string): Section[] {
  const anchorOf = anchors();
  const sections: Section[] = [];
  for (const token of lexer(markdown)) {
    if (token.type === "heading") {
      const heading = plainText(token);
      const anchor = anchorOf(heading);
      const [first] = sections;
      sections.push(
        first
          ? { page: first.page, heading, address: `${address}#${anchor}`, text: "" }
          : { page: heading, heading: "", address, text: "" },
      );
    } else if (token.type !== "html" && sections.length > 0) {
      sections.at(-1)!.text += ` ${token.raw}`;
    }
  }
  return sections.map((section) => ({ ...section, text: wordsOf(section.text) }));
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
