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
  };
}

const SHORTEST_INTERVAL_MS = 2_000;

/** Returns the response of a path, as `useRead` does. If the query is undefined, nothing is requested. */
export function useAnswer<Path extends ApiPath>(
  path: Path,
  query: Query | undefined,
  version: unknown = undefined,
): Answer<ApiAnswers[Path]> {
  const key = query && JSON.stringify([path, query]);
  return useRead({ key, version }, (signal) => ask(path, query, signal));
}

interface ReadProps {
  /** Identifies what is read. Undefined: nothing is read. */
  key: string | undefined;
  version: unknown;
  /** How much of it is read. */
  most?: number;
}

/**
 * Returns the value that `read` resolves with. Reads immediately, and again whenever `version` changes: one read at a
 * time, at most one every two seconds. If `key` or `most` changes, a read in progress is aborted. Until the next read
 * ends, the previous value is returned if the key is unchanged.
 */
export function useRead<T>(
  { key, version, most }: ReadProps,
  read: (signal: AbortSignal) => Promise<T>,
): Answer<T> {
  const [known, setKnown] = useState<{ key: string | undefined; answer: Answer<T> }>({ key, answer: {} });
  const reading = useRef<Repeated>(undefined);
  useEffect(() => {
    if (key === undefined) return;
    const repeated = new Repeated(SHORTEST_INTERVAL_MS, async (signal) => {
      try {
        const value = await read(signal);
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
    reading.current = repeated;
    return () => {
      reading.current = undefined;
      repeated.stop();
    };
  }, [key, most]);
  useEffect(() => reading.current?.request(), [key, most, version]);
  return known.key === key ? known.answer : {};
}

function problemOf(error: unknown): NonNullable<Answer<unknown>["problem"]> {
  return {
    message: error instanceof Error ? error.message : String(error),
    id: error instanceof Refusal ? error.id : undefined,
  };
}
