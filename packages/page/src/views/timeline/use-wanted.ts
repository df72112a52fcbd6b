import { useEffect, useRef } from "preact/hooks";
import type { Range } from "./scale.ts";
import type { TimelineData } from "./use-data.ts";

// While panning, ranges that are passed quickly are not requested.
const AFTER_MS = 150;

/** Reads what is missing in the shown range after a short delay. */
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
