import type { Bar, PodBars, Pods } from "./bars.ts";
import { isWithin } from "./bars.ts";
import type { Range } from "./scale.ts";

/** A row: a pod, or the containers of one name below an expanded pod. */
export interface Row {
  key: string;
  pod: PodBars;
  /** The container name. Undefined for the pod's own row. */
  container: string | undefined;
  /** The row's bars in the shown range, in the order of `PodBars`. */
  bars: readonly Bar[];
}

/** Whether a pod's "namespace/name" contains a text. An empty text matches all. */
export function isMatch({ namespace, name }: Pick<PodBars, "namespace" | "name">, filter: string): boolean {
  return `${namespace}/${name}`.toLowerCase().includes(filter.trim().toLowerCase());
}

/**
 * Returns the UIDs of the pods that have a bar in the range: pods with events in it first, then by namespace and name.
 * @param marked UIDs of pods with a mark in the range
 */
export function orderOf(pods: Pods, range: Range, marked: ReadonlySet<string>): string[] {
  const found = [...pods.values()].flatMap((pod) => {
    const bars = [...pod.bars.values()].filter((bar) => isWithin(bar, range));
    if (bars.length === 0) return [];
    const rank = marked.has(pod.uid) || bars.some((bar) => isEventful(bar, range)) ? 0 : 1;
    return [{ uid: pod.uid, rank, name: `${pod.namespace}/${pod.name}` }];
  });
  return found
    .sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.uid < b.uid ? -1 : 1))
    .map(({ uid }) => uid);
}

function isEventful({ from, to }: Bar, range: Range): boolean {
  const isIn = (at: number | undefined) => at !== undefined && at >= range.from && at <= range.to;
  return isIn(from) || isIn(to);
}

/**
 * Returns the rows of matching pods in a given order, followed by pods not in it yet. Pods without a bar in the range
 * have no row.
 */
export function rowsOf(
  pods: Pods,
  order: readonly string[],
  { range, filter, expanded }: { range: Range; filter: string; expanded: ReadonlySet<string> },
): Row[] {
  const rows: Row[] = [];
  for (const uid of new Set([...order, ...pods.keys()])) {
    const pod = pods.get(uid);
    if (!pod || !isMatch(pod, filter)) continue;
    const bars = [...pod.bars.values()].filter((bar) => isWithin(bar, range));
    if (bars.length === 0) continue;
    rows.push({ key: uid, pod, container: undefined, bars });
    if (!expanded.has(uid)) continue;
    const names = new Set(bars.filter(({ kind }) => kind === "container").map(({ name }) => name));
    for (const name of names) {
      const own = bars.filter((bar) => bar.kind === "container" && bar.name === name);
      rows.push({ key: `${uid}/${name}`, pod, container: name, bars: own });
    }
  }
  return rows;
}

/**
 * Returns the topmost bar of a row at a time. `slackMs` is the tolerance on both sides. Containers are above sandboxes.
 */
export function barAt({ bars }: Pick<Row, "bars">, at: number, slackMs: number): Bar | undefined {
  const near = { from: at - slackMs, to: at + slackMs };
  const found = bars.filter((bar) => isWithin(bar, near));
  return found.findLast(({ kind }) => kind === "container") ?? found.at(-1);
}
