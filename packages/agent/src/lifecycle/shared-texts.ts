// Container names: a node has few distinct ones.
const MAX_TEXTS = 1_000;

/** Interns strings, so that records and uncompressed events share each name. Bounded: cleared when full. */
export class SharedTexts {
  readonly #texts = new Map<string, string>();

  share(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MAX_TEXTS) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}
