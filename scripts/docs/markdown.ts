// What the checks and the site need of a Markdown page, by the parser that also renders it.
import { lexer, type Token, type Tokens, type TokensList } from "marked";

export interface Link {
  target: string;
  /** From 1. */
  line: number;
}

/** A block of code, fenced or indented. An indented block has no language and no info. */
export interface CodeBlock {
  /** First word of the info string: "sh". */
  language: string;
  /** The rest of it: `run=dev`. */
  info: string;
  text: string;
  /** Of the opening fence, from 1. */
  line: number;
}

export interface Heading {
  /** As GitHub makes it. */
  id: string;
  text: string;
  /** 1 for "#". */
  depth: number;
  /** The Markdown up to the next heading, without HTML. */
  below: string;
}

export interface MarkdownPage {
  /** The first heading's text. */
  title: string;
  /** In order. */
  headings: Heading[];
  links: Link[];
  blocks: CodeBlock[];
  /** For a renderer. */
  tokens: TokensList;
}

/** Parses a page. */
export function readMarkdown(text: string): MarkdownPage {
  const page: MarkdownPage = { title: "", headings: [], links: [], blocks: [], tokens: lexer(text) };
  const anchorOf = anchors();
  let line = 1;
  for (const top of page.tokens) {
    // By the first line alone: within a list the others are indented.
    const lineOf = ({ raw }: Token) => {
      const at = top.raw.indexOf(raw.split("\n", 1)[0]!);
      return line + newlines(top.raw.slice(0, Math.max(0, at)));
    };
    for (const token of withChildren(top)) {
      if (token.type === "heading") {
        const text = plainText(token);
        page.title ||= text;
        page.headings.push({ id: anchorOf(text), text, depth: token.depth, below: "" });
      }
      if (token.type === "link" || token.type === "image") {
        page.links.push({ target: token.href, line: lineOf(token) });
      }
      if (token.type === "html") {
        for (const [, target] of token.raw.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g))
          page.links.push({ target: target!, line: lineOf(token) });
      }
      if (token.type === "code") {
        const [, language, info] = /^(\S*)\s*(.*)$/.exec(token.lang ?? "")!;
        page.blocks.push({ language: language!, info: info!, text: token.text, line: lineOf(token) });
      }
    }
    const section = page.headings.at(-1);
    if (section && top.type !== "heading" && top.type !== "html") section.below += top.raw;
    line += newlines(top.raw);
  }
  return page;
}

// The ids of one page's headings, from their texts by GitHub's rule: a repeated one gets a number.
function anchors(): (heading: string) => string {
  const seen = new Map<string, number>();
  return (heading) => {
    const id = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const before = seen.get(id) ?? 0;
    seen.set(id, before + 1);
    return before === 0 ? id : `${id}-${before}`;
  };
}

/** A heading's text without its marks. */
export function plainText(token: Token): string {
  const children = (token as Tokens.Generic).tokens;
  if (children?.length) return children.map(plainText).join("");
  return "text" in token ? unescaped(token.text) : "";
}

function unescaped(text: string): string {
  const entities: Record<string, string> = {
    "&lt;": "<",
    "&gt;": ">",
    "&amp;": "&",
    "&quot;": '"',
    "&#39;": "'",
  };
  return text.replace(/&(lt|gt|amp|quot|#39);/g, (entity) => entities[entity]!);
}

function* withChildren(token: Token): Generator<Token> {
  yield token;
  const { tokens, items, header, rows } = token as Tokens.Generic;
  const cells = [...(header ?? []), ...(rows ?? []).flat()].map((cell: Tokens.TableCell) => cell.tokens);
  for (const child of [...(tokens ?? []), ...(items ?? []), ...cells.flat()]) yield* withChildren(child);
}

function newlines(text: string): number {
  return text.split("\n").length - 1;
}
