import { useEffect, useState } from "preact/hooks";
import { askServer } from "./fleet.ts";

/** An answer of the local server, or why there is none. Neither while it is awaited. */
export interface Asked<T> {
  value?: T;
  problem?: string;
}

/** Requests a path of the local server, and again if the path or query changes. Without a query, does nothing. */
export function useAsked<T>(path: string, query: Readonly<Record<string, string>> | undefined): Asked<T> {
  const key = query && JSON.stringify([path, query]);
  const [known, setKnown] = useState<{ key: string | undefined; asked: Asked<T> }>({
    key: undefined,
    asked: {},
  });
  useEffect(() => {
    if (!query) return;
    const stop = new AbortController();
    const show = (asked: Asked<T>) => {
      if (!stop.signal.aborted) setKnown({ key, asked });
    };
    // Without a deadline: a thousand agents may be asked.
    askServer<T>(path, query, stop.signal).then(
      (value) => show({ value }),
      (error: Error) => show({ problem: error.message }),
    );
    return () => stop.abort();
  }, [key]);
  return known.key === key ? known.asked : {};
}
