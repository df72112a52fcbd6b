import type { nodeFields, ValuesOf } from "./fields.ts";

/** Maximum age in milliseconds of a reading that a policy is evaluated with. */
export const OLDEST_READING_MS = 30_000;

/** A part of the node's state and when it was read, or why it is unknown. */
export type Part<T> =
  | {
      value: T;
      /** Monotonic milliseconds. */
      at: number;
    }
  | { missing: string };

type PartsOf<Tree> = { -readonly [Name in keyof Tree]: Part<ValuesOf<Tree[Name]>> };
type NodeFields = typeof nodeFields;

/** The parts of the variable `node`. */
export interface NodeSnapshot extends PartsOf<Omit<NodeFields, "psi">> {
  psi: PartsOf<NodeFields["psi"]>;
}

/** Readings of the node for policies. */
export interface NodeReadings {
  /**
   * Reads the node. Data that cannot be read is `missing`; throws only the signal's reason.
   * @param reads the fields to read, such as "node.memory.total"; parts without any of them are not read
   */
  read(reads: readonly string[], signal: AbortSignal): Promise<NodeSnapshot>;
}

/** The variable `node`, and the problems of the fields to read. */
export interface NodeVariable {
  node: Record<string, unknown>;
  /**
   * "node.psi.memory.some.avg10: the kernel measures no pressure". Empty if all fields are known and fresh.
   */
  problems: string[];
}

/**
 * Returns the snapshot as the variable of expressions.
 * @param reads the fields that the expressions read, such as "node.memory.total"
 */
export function nodeVariable(snapshot: NodeSnapshot, reads: readonly string[], now: number): NodeVariable {
  const problems: string[] = [];
  for (const path of reads) {
    const problem = problemOf(snapshot, path.split(".").slice(1), now);
    if (problem !== undefined) problems.push(`${path}: ${problem}`);
  }
  const { psi, ...parts } = snapshot;
  return { node: { ...valuesOf(parts), psi: valuesOf(psi) }, problems };
}

function problemOf(
  { psi, ...parts }: NodeSnapshot,
  [name, ...fields]: string[],
  now: number,
): string | undefined {
  const group: Readonly<Record<string, Part<unknown>>> = name === "psi" ? { ...psi } : { ...parts };
  const part = group[(name === "psi" ? fields.shift() : name) ?? ""];
  if (!part) return "is not read";
  if ("missing" in part) return part.missing;
  const ageMs = now - part.at;
  if (ageMs > OLDEST_READING_MS) return `read ${ageMs} ms ago, more than ${OLDEST_READING_MS} ms`;
  let value: unknown = part.value;
  for (const field of fields) value = isObject(value) ? value[field] : undefined;
  return typeof value === "number" && Number.isFinite(value) ? undefined : "the machine does not report it";
}

function valuesOf(parts: Readonly<Record<string, Part<unknown>>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, "value" in part ? part.value : {}]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
