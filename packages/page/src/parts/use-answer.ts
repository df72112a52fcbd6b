import type { ApiAnswers, ApiPath } from "@nodekeeper/api/openapi";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type Query, Refusal } from "../api.ts";
import { Repeated } from "./repeated.ts";

/** A response, as far as known. With a problem, `value` is the previous response, if any. */
export interface Answer<T> {
  readonly value?: T;
  /** Why there is no newer response: an error of the agent, or it is unreachable. */
  readonly problem?: {
    readonly message: string;
    readonly id: string | undefined;
    readonly isNotFound: boolean;
  };
}

const SHORTEST_INTERVAL_MS = 2_000;

/**
 * Returns the response of a path, requested immediately and again whenever `version` changes: one request at a time, at
 * most one per two seconds. If the query is undefined, nothing is requested.
 */
export function useAnswer<Path extends ApiPath>(
  path: Path,
  query: Query | undefined,
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
