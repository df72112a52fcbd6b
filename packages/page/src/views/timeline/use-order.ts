import { useRef } from "preact/hooks";
import { orderOf } from "./rows.ts";
import type { Range } from "./scale.ts";
import { bySeverity } from "./signals.ts";
import type { TimelineData } from "./use-data.ts";

const AGAIN_AFTER_MS = 5_000;
const LEAST_MS = 400;

interface Order {
  pods: readonly string[];
  signals: readonly string[];
}

/**
 * Returns the order of pods and signals. Recomputed when another range is shown, and every five seconds while live:
 * rows that move under the pointer are unreadable.
 */
export function useOrder(
  { events, marks, signals }: TimelineData,
  range: Range,
  isLive: boolean,
  isHeld: () => boolean,
): Order {
  const made = useRef<Order & { at: number; key: string; isPartial: boolean }>(undefined);
  const now = performance.now();
  const { current } = made;
  const key = `${isLive ? range.to - range.from : `${range.from} ${range.to}`} ${signals.length}`;
  const age = now - (current?.at ?? Number.NEGATIVE_INFINITY);
  const isOther = current?.key !== key || current.isPartial;
  const isDue = isOther ? age >= LEAST_MS : isLive && age >= AGAIN_AFTER_MS && !isHeld();
  if (!isDue && current) return current;
  const marked = new Set<string>();
  for (const { at, pod } of marks) if (pod && at >= range.from && at <= range.to) marked.add(pod.uid);
  made.current = {
    pods: orderOf(events.pods, range, marked),
    signals: bySeverity(signals, range).map(({ key }) => key),
    at: now,
    key,
    isPartial: events.isReading || events.version === 0,
  };
  return made.current;
}
