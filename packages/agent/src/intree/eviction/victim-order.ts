import type { ObservedPod } from "../../eviction/index.ts";

/**
 * The pods in the order in which they are evicted: the greatest first figure first, among equals the greatest second
 * one, at last by UID. A pod of which a figure is not known is left out: no pod is evicted for what could not be read.
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
