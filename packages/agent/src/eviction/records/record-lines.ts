import { emptyEvictionState } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { RoundRecord } from "@nodekeeper/api/records";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { EvictionStore, HistoryStore } from "../../state/index.ts";
import { storedOf } from "./pod-history.ts";
import type { EvictionRecords } from "./records.ts";

/** A pod of the history, or the node itself, in an exported file. The file also contains complete rounds. */
export type HistoryLine = ApiAnswers["eviction/history"]["lines"][number];
type PodLine = Extract<HistoryLine, { kind: "pod" }>;
type NodeLine = Extract<HistoryLine, { kind: "node" }>;

/** The stores into which an exported file is imported. */
export interface ImportTarget {
  records: EvictionRecords;
  evictions: EvictionStore;
  history: HistoryStore;
}

const EVERYTHING = { maxAgeMs: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER };

/** Imports one line of an exported file into the stores. Throws `invalid` if the line is not a record. */
export function importLine(line: RoundRecord | HistoryLine, target: ImportTarget): void {
  try {
    if (!("kind" in line)) target.records.import(line);
    else if (line.kind === "pod") importPod(line, target);
    else importNode(line, target);
  } catch (error) {
    const what = "kind" in line ? `the line of a ${line.kind}` : `round ${line.id}`;
    throw new NodekeeperError("invalid", `${what} is incomplete or malformed`, { cause: error });
  }
}

function importPod({ pod, events, steps }: PodLine, { records, history }: ImportTarget): void {
  const change = { pods: [storedOf(pod)], events, watchedAt: pod.leftAt ?? pod.seenAt, cursor: null };
  history.save(change, { ...EVERYTHING, mostLeft: Number.MAX_SAFE_INTEGER });
  records.saveState(records.loadState() ?? emptyEvictionState(), steps);
}

function importNode({ state, events, coverage }: NodeLine, { evictions, history }: ImportTarget): void {
  const change = { pods: [], events, watchedAt: state.at ?? 0, cursor: null };
  history.save(change, { ...EVERYTHING, mostLeft: Number.MAX_SAFE_INTEGER });
  const whole = { ...emptyEvictionState(), at: state.at, conditions: state.conditions };
  evictions.save({ state: JSON.stringify(whole), steps: [] }, EVERYTHING);
  if (coverage?.oldest == null) return;
  const { oldest: since, requests = since, gaps } = coverage;
  evictions.coverage.replace({ since, requests, marks: since, gaps });
}
