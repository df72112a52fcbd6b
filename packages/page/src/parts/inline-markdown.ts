/** A piece of a sentence: code where it was between backticks. */
export interface Piece {
  readonly text: string;
  readonly isCode: boolean;
}

/** The pieces of a sentence of Markdown; of links, their labels. */
export function inlinePieces(markdown: string): Piece[] {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .split("`")
    .map((text, at) => ({ text, isCode: at % 2 === 1 }))
    .filter(({ text }) => text !== "");
}
