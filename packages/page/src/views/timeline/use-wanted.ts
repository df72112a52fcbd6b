import { useEffect, useRef } from "preact/hooks";
import type { Range } from "./scale.ts";
import type { TimelineData } from "./use-data.ts";

// While one pans, what is passed by quickly is not asked for.
const AFTER_MS = 150;

/** Reads what the shown stretch lacks, shortly after it has been shown. */
export function useWanted(data: TimelineData, range: Range, isLive: boolean): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef<() => void>(() => {});
  latest.current = () => data.want(range, isLive);
  useEffect(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, AFTER_MS);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
}
