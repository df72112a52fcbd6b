import { useEffect, useState } from "preact/hooks";

/** Counts up every `everyMs` milliseconds; does not count where that is undefined. */
export function useBeat(everyMs: number | undefined): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => setCount((before) => before + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return count;
}
