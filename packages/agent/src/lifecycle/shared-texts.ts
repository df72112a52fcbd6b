// Names of containers and reasons of exits: a node has few different ones.
const MOST = 1_000;

/** Gives equal texts as one, so that a log of many events holds each name once. Bounded: it begins anew when full. */
export class SharedTexts {
  readonly #texts = new Map<string, string>();

  share(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= MOST) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}
