import { useEffect, useState } from "preact/hooks";

/** Returns a counter incremented every `everyMs` milliseconds. Stopped if that is undefined. */
export function useBeat(everyMs: number | undefined): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => setCount((before) => before + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return count;
}
