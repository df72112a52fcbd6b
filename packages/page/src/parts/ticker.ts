import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { nodeNow } from "../node-clock.ts";

const EVERY_MS = 1_000;

/** Calls its listeners once a second, all together. Runs only while there are listeners. */
export class Ticker {
  readonly #listeners = new Set<(now: number) => void>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /**
   * @param onTick gets the current time of the node's clock, milliseconds since the epoch. Returns a function that
   * unsubscribes.
   */
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

/** The page's ticker, shared so that all counters change at the same moment. */
export const PageTicker = createContext(new Ticker());

/** Time of the last message of an agent that is disconnected: the node's state since then is unknown. */
export const KnownUntil = createContext(Number.POSITIVE_INFINITY);

/** As `useTicking`, for a text about the node's state, which stays as of the last message of a disconnected agent. */
export function useKnownTicking(textOf: (now: number) => string): string {
  const until = useContext(KnownUntil);
  return useTicking((now) => textOf(Math.min(now, until)));
}

/** Returns a text that depends on the current time. Rerenders only this component, and only when the text changes. */
export function useTicking(textOf: (now: number) => string): string {
  const ticker = useContext(PageTicker);
  const [, setDrawn] = useState("");
  const latest = useRef(textOf);
  latest.current = textOf;
  useEffect(() => ticker.listen((now) => setDrawn(latest.current(now))), [ticker]);
  return textOf(nodeNow());
}
