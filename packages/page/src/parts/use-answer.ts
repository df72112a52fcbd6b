import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiAnswers, type ApiPath, ask, Refusal } from "../api.ts";

/** What is known of an answer. With a problem, `value` is what was answered before, if anything was. */
export interface Answer<T> {
  readonly value?: T;
  /** Why there is no newer one: a refusal of the agent, or that none answers. */
  readonly problem?: {
    readonly message: string;
    readonly id: string | undefined;
    readonly isNotFound: boolean;
  };
}

const SHORTEST_INTERVAL_MS = 2_000;

/**
 * The answer of an address, asked for at once and again whenever `version` changes, at most once in two seconds; an answer that
 * is no longer wanted is dropped. Undefined query: nothing is asked.
 */
export function useAnswer<Path extends ApiPath>(
  path: Path,
  query: Readonly<Record<string, string | number | undefined>> | undefined,
  version: unknown = undefined,
): Answer<ApiAnswers[Path]> {
  const key = query && JSON.stringify([path, query]);
  const [known, setKnown] = useState<{ key: string | undefined; answer: Answer<ApiAnswers[Path]> }>({
    key,
    answer: {},
  });
  const askedAt = useRef(Number.NEGATIVE_INFINITY);
  const askedKey = useRef(key);
  useEffect(() => {
    if (!query) return;
    const stop = new AbortController();
    const isSame = askedKey.current === key;
    askedKey.current = key;
    const wait = isSame ? Math.max(askedAt.current + SHORTEST_INTERVAL_MS - performance.now(), 0) : 0;
    const timer = setTimeout(async () => {
      askedAt.current = performance.now();
      try {
        const value = await ask(path, query, stop.signal);
        if (!stop.signal.aborted) setKnown({ key, answer: { value } });
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = problemOf(error);
        setKnown((before) => ({
          key,
          answer: before.key === key ? { ...before.answer, problem } : { problem },
        }));
      }
    }, wait);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, version]);
  return known.key === key ? known.answer : {};
}

function problemOf(error: unknown): NonNullable<Answer<unknown>["problem"]> {
  const isRefusal = error instanceof Refusal;
  return {
    message: error instanceof Error ? error.message : String(error),
    id: isRefusal ? error.id : undefined,
    isNotFound: isRefusal && error.isNotFound,
  };
}
