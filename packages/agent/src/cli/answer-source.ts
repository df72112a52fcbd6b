import { timeOf } from "@nodekeeper/api/wording";

/** Source of a response: a node's agent, or the node's records in the archive. Times are wall-clock milliseconds. */
export type AnswerSource = (
  | { kind: "agent" }
  | {
      kind: "archive";
      /** URLs of the archive's stores, separated by commas. */
      name: string;
      /** `oldest` and `newest`: times of the node's first and last record. */
      oldest: number;
      newest: number;
    }
) & {
  node: string;
  /** Notes on the response, for example on missing records, in sentences. */
  notes: string[];
};

/** An answer. The source is undefined if the user named it. */
export interface Sourced<T> {
  answer: T;
  source?: AnswerSource | undefined;
}

/** Returns lines for the end of a page: the source of the response, and its notes. Empty without a source. */
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
