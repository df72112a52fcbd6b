import { timeOf } from "@nodekeeper/api/wording";

/** What answered: the agent of a node, or the archive from records of the node. Times are wall-clock milliseconds. */
export type AnswerSource =
  | { kind: "agent"; node: string }
  | {
      kind: "archive";
      /** Of its stores. */
      name: string;
      node: string;
      /** Of the first and last records of the node. */
      oldest: number;
      newest: number;
      /** What the answer lacks, in sentences. */
      notes: string[];
    };

/** An answer. The source is undefined if the user named it. */
export interface Sourced<T> {
  answer: T;
  source?: AnswerSource | undefined;
}

/** Returns lines for the end of a page: who answered, and what is missing. */
export function sourceLines(source: AnswerSource | undefined): string[] {
  if (source === undefined) return [];
  if (source.kind === "agent") return [`Answered by the agent on node ${source.node}.`];
  const { name, node, oldest, newest, notes } = source;
  return [
    `Answered by the archive ${name}: records of node ${node} from ${timeOf(oldest)} to ${timeOf(newest)}.`,
    "Rounds without a consequence for the pod, and repeated refusals, are not archived.",
    ...notes,
  ];
}
