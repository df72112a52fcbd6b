import { timeOf } from "@nodekeeper/api/wording";

/** What answered: the agent of a node, or the archive from records of the node. Times are wall-clock milliseconds. */
export type AnswerSource = (
  | { kind: "agent" }
  | {
      kind: "archive";
      /** Of its stores. */
      name: string;
      /** Of the first and last records of the node. */
      oldest: number;
      newest: number;
    }
) & {
  node: string;
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
  const { node, notes } = source;
  const who =
    source.kind === "agent"
      ? `the agent on node ${node}`
      : `the archive ${source.name}: records of node ${node} from ${timeOf(source.oldest)} to ${timeOf(source.newest)}`;
  return [`Answered by ${who}.`, ...notes];
}

/** Returns an answer as printed in JSON or YAML. */
export function withSource<T extends object>({ answer, source }: Sourced<T>): object {
  return source === undefined ? answer : { ...answer, source };
}
