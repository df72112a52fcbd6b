/** A piece of a sentence. It is code if it was in backticks. */
export interface Piece {
  readonly text: string;
  readonly isCode: boolean;
}

/** Splits a Markdown sentence into pieces. Links are replaced by their labels. */
export function inlinePieces(markdown: string): Piece[] {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .split("`")
    .map((text, at) => ({ text, isCode: at % 2 === 1 }))
    .filter(({ text }) => text !== "");
}
