/** The time under the pointer, for components that show it. Avoids rerendering the view on each move. */
export class Hover {
  readonly #listeners = new Set<(at: number | undefined) => void>();
  at: number | undefined;

  set(at: number | undefined): void {
    if (at === this.at) return;
    this.at = at;
    for (const listener of this.#listeners) listener(at);
  }

  /** Returns a function that unsubscribes. */
  listen(listener: (at: number | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
