import { type ArchivedNode, explainArchivedPod, recordsOf } from "@nodekeeper/api/archive";
import { PodNotRecorded } from "@nodekeeper/api/errors";
import type { PodExplanation } from "@nodekeeper/api/records";
import type { NodekeeperError } from "@nodekeeper/core/lib";
import type { Sourced } from "../answer-source.ts";
import { type PodName, podText } from "../pod-name.ts";
import type { StoredRows } from "./stored-rows.ts";

const MOST_RECORDS = 5_000;
const MOST_PODS = 1_000;
const MOST_OTHER_UIDS = 10;
const MOST_GAPS = 200;
const ofPod = ["nodekeeper.eviction.decision", "nodekeeper.pod.ended"] as const;

/** A pod that the archive has records of. Times are milliseconds since the epoch. */
interface FoundPod {
  uid: string;
  node: string;
  lastAt: number;
}

/** Answers from the exported records of all nodes, also of those that are gone. */
export class Archive {
  readonly #rows: StoredRows;

  constructor(rows: StoredRows) {
    this.#rows = rows;
  }

  /**
   * Explains a pod. If several had the name, the one with the last record. Throws `notFound`, or as `StoredRows.records`.
   * @param node only pods of this node
   * @param reasons why agents did not answer, in sentences
   */
  async explainPod(
    pod: PodName,
    node: string | undefined,
    reasons: readonly string[] = [],
  ): Promise<Sourced<PodExplanation>> {
    const [found, ...others] = await this.#find(pod, node);
    if (!found) throw this.#notRecorded(pod);
    const { uid } = found;
    const [{ records, isCut }, archived] = await Promise.all([
      this.#rows.records(
        { where: { "k8s.pod.uid": uid }, events: [...ofPod, "nodekeeper.eviction.step"] },
        MOST_RECORDS,
      ),
      this.#node(found.node),
    ]);
    const explanation = explainArchivedPod(uid, records, archived);
    if (!explanation) throw this.#notRecorded(pod);
    explanation.otherUids = others.map((other) => other.uid).slice(0, MOST_OTHER_UIDS);
    const notes = [
      ...reasons,
      ...(isCut ? [`Only the last ${MOST_RECORDS} records of the pod were read.`] : []),
      ...(explanation.history?.leftAt == null ? ["The archive has no end of this pod."] : []),
      ...this.#rows.problems.map((problem) => `${problem}.`),
    ];
    return {
      answer: explanation,
      source: { kind: "archive", name: this.#rows.name, ...span(archived), notes },
    };
  }

  async #find(pod: PodName, node: string | undefined): Promise<FoundPod[]> {
    const where: Record<string, string> =
      "uid" in pod
        ? { "k8s.pod.uid": pod.uid }
        : { "k8s.namespace.name": pod.namespace, "k8s.pod.name": pod.name };
    const pipe = `stats by ("k8s.pod.uid", "k8s.node.name") max(_time) last | sort by (last desc)`;
    const rows = await this.#rows.rows({ where, node, events: ofPod }, pipe, MOST_PODS);
    const pods = rows.map((row) => ({
      uid: row["k8s.pod.uid"] ?? "",
      node: row["k8s.node.name"] ?? "",
      lastAt: Date.parse(row.last ?? ""),
    }));
    pods.sort((a, b) => b.lastAt - a.lastAt);
    return [...new Map(pods.toReversed().map((one) => [one.uid, one])).values()].reverse();
  }

  async #node(name: string): Promise<ArchivedNode> {
    const pipe = "stats min(_time) oldest, max(_time) newest";
    const [spans, { records }] = await Promise.all([
      this.#rows.rows({ node: name }, pipe, 1),
      this.#rows.records({ node: name, events: ["nodekeeper.gap"] }, MOST_GAPS),
    ]);
    return {
      name,
      oldest: Math.min(...spans.map(({ oldest = "" }) => Date.parse(oldest))),
      newest: Math.max(...spans.map(({ newest = "" }) => Date.parse(newest))),
      gaps: recordsOf(records, "nodekeeper.gap").map(({ body: { from, to, why } }) => ({ from, to, why })),
    };
  }

  #notRecorded(pod: PodName): NodekeeperError {
    const problems = this.#rows.problems.map((problem) => `; ${problem}`).join("");
    return new PodNotRecorded({
      problem: `the archive ${this.#rows.name} has neither a decision about the pod ${podText(pod)} nor its end${problems}`,
    });
  }
}

function span({ name, oldest, newest }: ArchivedNode) {
  return { node: name, oldest, newest };
}
