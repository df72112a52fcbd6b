import type { KubeObject } from "@nodekeeper/core/kube";
import { lastTaintWriter, listedTaints } from "../../reporting/index.ts";
import { changedTaints, newTaints, readNodeTaints, valuedTaints } from "./node-taints.ts";

/** A taint of the agent that another client removed or changed. */
export interface TaintLoss {
  /** "key:effect" */
  taint: string;
  what: "removed" | "changed";
  /**
   * For example "kubectl-taint (Update at 2026-11-21T20:28:50Z)" from managedFields; "another client" if they do not
   * show it.
   */
  by: string;
}

/**
 * Returns the agent's taints that another client removed or changed between two versions of a Node. Pure.
 *
 * 1. A removal by the agent itself is never returned: the same write removes the taint from the annotation. If the
 *    taint was removed from the annotation too, it is returned only if managedFields name another client. The agent's
 *    taints have no value, so another client set any value.
 * 2. The client is named only if the versions are adjacent, so that its write is the last change of the list, and
 *    managedFields show one owner of the list. When the last taint is removed, the list has no owner.
 * @param isAdjacent whether `after` is the version that follows `before`
 */
export function taintLosses(
  before: KubeObject,
  after: KubeObject,
  manager: string,
  isAdjacent: boolean,
): TaintLoss[] {
  if (before.metadata.uid !== after.metadata.uid) return [];
  const { taints: old, own } = readNodeTaints(before, manager);
  if (own.size === 0) return [];
  const { taints } = readNodeTaints(after, manager);
  const writer = lastTaintWriter(after);
  const isOther = isAdjacent && writer?.manager !== undefined && writer.manager !== manager;
  const by = isOther
    ? `${writer.manager} (${writer.operation}${writer.time ? ` at ${writer.time}` : ""})`
    : "another client";
  const stillListed = listedTaints(after);
  const isTheirs = (taint: string) => own.has(taint) && (isOther || stillListed.has(taint));
  const lossesOf = (ids: readonly string[], what: TaintLoss["what"]) =>
    ids.filter(isTheirs).map((taint) => ({ taint, what, by }));
  const changed = changedTaints(old, taints);
  return [
    // Taints that are only in the earlier list were removed.
    ...lossesOf(newTaints(taints, old), "removed"),
    ...lossesOf(
      valuedTaints(taints).filter((taint) => changed.includes(taint)),
      "changed",
    ),
  ];
}
