import {
  type ArchivedEviction,
  type ArchivedNode,
  type ArchivedNodeExplanation,
  decisionAttributes,
  decisionFields,
  evictionsOf,
  explainArchivedNode,
  explainArchivedPod,
  recordsOf,
} from "@nodekeeper/api/archive";
import { NodeNotArchived, PodNotRecorded } from "@nodekeeper/api/errors";
import type { PodExplanation } from "@nodekeeper/api/records";
import { timeOf } from "@nodekeeper/api/wording";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { AnswerSource, Sourced } from "../answer-source.ts";
import { type FoundPod, findPods, MOST_PODS, ofPods, type PodQuery, queryText } from "./find-pods.ts";
import type { Selection, StoredRows } from "./stored-rows.ts";
import { quoted } from "./victoria-logs.ts";

const MOST_RECORDS = 5_000;
const MOST_OTHERS = 10;
const MOST_GAPS = 200;
const MOST_DECISIONS = 20_000;
const MOST_NODES = 10_000;
const MOST_CLUSTERS = 100;
const CLUSTER = "k8s.cluster.name";

/** Evictions of several nodes. */
export interface ArchivedEvictions {
  /** URLs of the archive's stores, separated by commas. */
  archive: string;
  evictions: ArchivedEviction[];
  /** Why the list may be incomplete, in sentences. */
  notes: string[];
}

/** A node with records in the archive, and the times of the first and last record, milliseconds since the epoch. */
export interface ArchivedSpan {
  node: string;
  oldest: number;
  newest: number;
}

export interface ArchivedNodes {
  nodes: ArchivedSpan[];
  /** Why the list may be incomplete. Without trailing periods. */
  problems: string[];
}

/** The pod that a query selects, and the other pods that match it. */
export interface MeantPod {
  query: PodQuery;
  pod: FoundPod;
  others: FoundPod[];
  /** Whether earlier pods may have been left out. */
  isCut: boolean;
}

/**
 * Queries the exported records of all nodes, including deleted nodes. All methods reject with `unavailable` if no store
 * responds.
 */
export class Archive {
  readonly #rows: StoredRows;

  constructor(rows: StoredRows) {
    this.#rows = rows;
  }

  /** Returns the pods that match a query. Throws `notFound`, and `invalid` if they are from several clusters. */
  async find(query: PodQuery): Promise<MeantPod> {
    const { pods, isCut } = await findPods(this.#rows, query);
    const [pod, ...others] = pods;
    if (!pod) throw this.#notRecorded(query);
    this.#checkCluster(queryText(query), [pod, ...others]);
    return { query, pod, others, isCut };
  }

  // Throws `invalid` if records are from several clusters, because names are unique only within a cluster.
  #checkCluster(what: string, found: readonly { cluster: string }[]): void {
    const clusters = [...new Set(found.map(({ cluster }) => cluster))].sort();
    if (clusters.length < 2) return;
    const names = clusters.map((name) => name || "(none)").join(", ");
    const message = `the archive has the ${what} in the clusters ${names}; choose one with --archive-attributes k8s.cluster.name=NAME`;
    throw new NodekeeperError("invalid", message);
  }

  /**
   * Explains a pod. Throws `notFound`.
   * @param reasons why agents did not answer, in sentences
   */
  async explainPod(meant: MeantPod, reasons: readonly string[]): Promise<Sourced<PodExplanation>> {
    const { uid, node, cluster } = meant.pod;
    const events = [...ofPods, "nodekeeper.eviction.step"] as const;
    const [{ records, isCut }, archived] = await Promise.all([
      this.#rows.records({ where: { "k8s.pod.uid": uid }, events }, MOST_RECORDS),
      this.#node(node, cluster),
    ]);
    const explanation = archived && explainArchivedPod(uid, records, this.#withUnread(archived));
    if (!explanation) throw this.#notRecorded(meant.query);
    if (!("owner" in meant.query.pod))
      explanation.otherUids = meant.others.slice(0, MOST_OTHERS).map((other) => other.uid);
    const notes = [
      ...reasons,
      ...(isCut ? [`Only the last ${MOST_RECORDS} records of the pod were read.`] : []),
      ...(explanation.history?.leftAt == null ? ["The archive has no end of this pod."] : []),
      "Rounds without a consequence for the pod, and repeated refusals, are not archived.",
      ...notesOf(meant, explanation.history?.seenAt),
    ];
    return { answer: explanation, source: this.#source(archived, notes) };
  }

  /**
   * Explains a node. Throws `notFound`, and `invalid` if several clusters have one.
   * @param reasons as for `explainPod`
   */
  async explainNode(node: string, reasons: readonly string[]): Promise<Sourced<ArchivedNodeExplanation>> {
    const events = ["nodekeeper.eviction.condition", "nodekeeper.mark"] as const;
    const [{ records, isCut }, archived] = await Promise.all([
      this.#rows.records({ node, events }, MOST_RECORDS),
      this.#node(node),
    ]);
    if (!archived) {
      const problem = `the archive ${this.#rows.name} has no record of node ${node}${this.#problemsText()}`;
      throw new NodeNotArchived({ problem });
    }
    const notes = [...reasons, ...(isCut ? [`Only the last ${MOST_RECORDS} of its records were read.`] : [])];
    const answer = explainArchivedNode(records, this.#withUnread(archived));
    return { answer, source: this.#source(archived, notes) };
  }

  /** Returns the evictions since a time (milliseconds since the epoch), and why the list may be incomplete. */
  async evictions(selection: Pick<Selection, "node" | "where">, since: number): Promise<ArchivedEvictions> {
    const fields = [...decisionAttributes, ...decisionFields].map(quoted).join(", ");
    const pipes = [
      'filter -"nodekeeper.result":in("refused", "withdrawing")',
      `sort by (_time desc) limit ${MOST_DECISIONS}`,
      `unpack_json from _msg fields (${decisionFields.map(quoted).join(", ")})`,
      `fields ${fields}`,
    ];
    const decisions = { ...selection, since, events: ["nodekeeper.eviction.decision"] as const };
    const [rows, gaps] = await Promise.all([
      this.#rows.rows(decisions, pipes.join(" | "), MOST_DECISIONS),
      this.#rows.records({ node: selection.node, since, events: ["nodekeeper.gap"] }, MOST_GAPS),
    ]);
    const notes = recordsOf(gaps.records, "nodekeeper.gap").map(
      ({ node, body: { from, to, why } }) =>
        `Records of node ${node} are missing between ${timeOf(from)} and ${timeOf(to)}: ${why}.`,
    );
    if (rows.length >= MOST_DECISIONS)
      notes.push(`Only the last ${MOST_DECISIONS} decisions were read: use a shorter --since.`);
    if (gaps.isCut) notes.push(`There are more than ${MOST_GAPS} gaps: the oldest are left out.`);
    const problems = this.#rows.problems.map((problem) => `${problem}.`);
    return { archive: this.#rows.name, evictions: evictionsOf(rows, since), notes: [...notes, ...problems] };
  }

  /**
   * Returns the nodes with records in the archive, and why the list may be incomplete. Throws `invalid` if the records
   * are from several clusters.
   */
  async nodes(): Promise<ArchivedNodes> {
    const pipe = `stats by ("k8s.node.name", "${CLUSTER}") min(_time) oldest, max(_time) newest | limit ${MOST_NODES}`;
    const rows = await this.#rows.rows({}, pipe, MOST_NODES);
    this.#checkCluster(
      "nodes",
      rows.map((row) => ({ cluster: row[CLUSTER] ?? "" })),
    );
    const spans = new Map<string, ArchivedSpan>();
    // Several stores may return a row for the same node.
    for (const { "k8s.node.name": node = "", ...times } of rows) {
      const [oldest, newest] = [Date.parse(times.oldest ?? ""), Date.parse(times.newest ?? "")];
      if (node === "" || !Number.isFinite(oldest) || !Number.isFinite(newest)) continue;
      const known = spans.get(node) ?? { node, oldest, newest };
      spans.set(node, {
        node,
        oldest: Math.min(known.oldest, oldest),
        newest: Math.max(known.newest, newest),
      });
    }
    const cut = rows.length >= MOST_NODES ? [`only ${MOST_NODES} nodes of the archive were read`] : [];
    return { nodes: [...spans.values()], problems: [...cut, ...this.#rows.problems] };
  }

  /**
   * Returns the time span of a node's records in the archive, and the gaps in them; undefined if there are no records.
   * Throws `invalid` if the records are from several clusters.
   * @param cluster empty: records without a cluster name; undefined: any cluster
   */
  async #node(name: string, cluster?: string): Promise<ArchivedNode | undefined> {
    const pipe = `stats by ("${CLUSTER}") min(_time) oldest, max(_time) newest`;
    const where: Record<string, string> = cluster === undefined ? {} : { [CLUSTER]: cluster };
    const [spans, { records, isCut }] = await Promise.all([
      this.#rows.rows({ node: name, where }, pipe, MOST_CLUSTERS),
      this.#rows.records({ node: name, where, events: ["nodekeeper.gap"] }, MOST_GAPS),
    ]);
    this.#checkCluster(
      `node ${name}`,
      spans.map((span) => ({ cluster: span[CLUSTER] ?? "" })),
    );
    const times = spans.flatMap(({ oldest = "", newest = "" }) => [Date.parse(oldest), Date.parse(newest)]);
    const known = times.filter(Number.isFinite);
    if (known.length === 0) return undefined;
    const gaps = recordsOf(records, "nodekeeper.gap").map(({ body: { from, to, why } }) => ({
      from,
      to,
      why,
    }));
    const [oldest, newest] = [Math.min(...known), Math.max(...known)];
    if (isCut)
      gaps.unshift({ from: oldest, to: gaps[0]?.from ?? newest, why: `more than ${MOST_GAPS} gaps` });
    return { name, oldest, newest, gaps };
  }

  // Adds unread records as gaps. They may concern any pod of the node, so a missing record does not prove that there
  // was no eviction.
  #withUnread(node: ArchivedNode): ArchivedNode {
    const { oldest, newest } = node;
    const unread = this.#rows.unread.map(({ from, why }) => ({
      from: Math.max(from, oldest),
      to: newest,
      why,
    }));
    return { ...node, gaps: [...node.gaps, ...unread] };
  }

  #source({ name: node, oldest, newest }: ArchivedNode, notes: readonly string[]): AnswerSource {
    const problems = this.#rows.problems.map((problem) => `${problem}.`);
    return { kind: "archive", name: this.#rows.name, node, oldest, newest, notes: [...notes, ...problems] };
  }

  #notRecorded(query: PodQuery): NodekeeperError {
    const problem = `the archive ${this.#rows.name} has neither a decision about the ${queryText(query)} nor its end`;
    return new PodNotRecorded({ problem: `${problem}${this.#problemsText()}` });
  }

  #problemsText(): string {
    return this.#rows.problems.map((problem) => `; ${problem}`).join("");
  }
}

/**
 * Returns notes on how the pod was chosen, in sentences: other pods of the same controller, and whether the pod existed
 * at the time of the query.
 * @param seenAt when the pod was first seen, milliseconds since the epoch; undefined if unknown
 */
export function notesOf({ query, pod, others, isCut }: MeantPod, seenAt: number | undefined): string[] {
  const { at } = query;
  const notes: string[] = [];
  if ("owner" in query.pod && others.length > 0) {
    const some = others.slice(0, MOST_OTHERS).map(({ name, uid }) => `${name} (${uid})`);
    const least = isCut ? "at least " : "";
    const more = others.length > some.length ? ` and ${least}${others.length - some.length} more` : "";
    const { kind, name } = query.pod.owner;
    notes.push(`Other pods of ${kind}/${name}, explained by UID: ${some.join(", ")}${more}.`);
  }
  if (at === undefined) return notes;
  if (pod.lastAt < at) notes.push(`No pod with a later record than ${timeOf(at)}: this is the last one.`);
  if (seenAt === undefined || seenAt <= at) return notes;
  notes.push(`It was first seen at ${timeOf(seenAt)}, after ${timeOf(at)}.`);
  if (isCut) notes.push(`Only the last ${MOST_PODS} pods were read: an earlier one may be meant.`);
  return notes;
}
