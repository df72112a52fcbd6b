import type { ObservedPod } from "../../eviction/index.ts";

/**
 * Sorts pods in eviction order: by the first value descending, then by the second descending, and so on, finally by UID.
 * Pods with an unknown value are excluded, so that no pod is evicted without a reading.
 */
export function victimOrder<T extends ObservedPod>(
  pods: readonly T[],
  figuresOf: (pod: T) => readonly (number | undefined)[],
): T[] {
  const measured = pods.flatMap((pod) => {
    const figures = figuresOf(pod).filter((figure) => figure !== undefined);
    return figures.length === figuresOf(pod).length ? [{ pod, figures }] : [];
  });
  measured.sort((a, b) => {
    const at = a.figures.findIndex((figure, index) => figure !== b.figures[index]);
    return at < 0 ? (a.pod.pod.uid < b.pod.pod.uid ? -1 : 1) : b.figures[at]! - a.figures[at]!;
  });
  return measured.map(({ pod }) => pod);
}
