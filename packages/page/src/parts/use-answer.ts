import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiAnswers, type ApiPath, ask, Refusal } from "../api.ts";
import { Repeated } from "./repeated.ts";

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
 * The answer of an address, asked for at once and again whenever `version` changes: one request at a time, and at most one
 * in two seconds. Undefined query: nothing is asked.
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
  const asking = useRef<Repeated>(undefined);
  useEffect(() => {
    if (!query) return;
    const repeated = new Repeated(SHORTEST_INTERVAL_MS, async (signal) => {
      try {
        const value = await ask(path, query, signal);
        if (!signal.aborted) setKnown({ key, answer: { value } });
      } catch (error) {
        if (signal.aborted) return;
        const problem = problemOf(error);
        setKnown((before) => ({
          key,
          answer: before.key === key ? { ...before.answer, problem } : { problem },
        }));
      }
    });
    asking.current = repeated;
    return () => {
      asking.current = undefined;
      repeated.stop();
    };
  }, [key]);
  useEffect(() => asking.current?.request(), [key, version]);
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
