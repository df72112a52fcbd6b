import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { nodeNow } from "../node-clock.ts";

const EVERY_MS = 1_000;

/** Calls its listeners once a second, all at the same time, as long as there are any. */
export class Ticker {
  readonly #listeners = new Set<(now: number) => void>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** @param onTick gets the time of now by the node's clock, milliseconds since the epoch. Returns how to stop. */
  listen(onTick: (now: number) => void): () => void {
    this.#listeners.add(onTick);
    this.#timer ??= setInterval(() => {
      const now = nodeNow();
      for (const listener of [...this.#listeners]) listener(now);
    }, EVERY_MS);
    return () => {
      this.#listeners.delete(onTick);
      if (this.#listeners.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }
}

/** The ticker of the page: all that counts changes at the same moment. */
export const PageTicker = createContext(new Ticker());

/** A text that depends on the time of now. The component alone is drawn again, and only when the text has changed. */
export function useTicking(textOf: (now: number) => string): string {
  const ticker = useContext(PageTicker);
  const [, setDrawn] = useState("");
  const latest = useRef(textOf);
  latest.current = textOf;
  useEffect(() => ticker.listen((now) => setDrawn(latest.current(now))), [ticker]);
  return textOf(nodeNow());
}
