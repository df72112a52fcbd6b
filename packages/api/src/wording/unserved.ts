import type { UnservedReason, UnservedThreshold } from "../decide/index.ts";

// The message does not include these for the given reasons.
const prefixes: Partial<Record<UnservedReason, string>> = {
  failed: "the call for pods failed: ",
  late: "late: ",
};

/**
 * Describes why no pod may be selected for a threshold: "named 2 pods, none can be evicted now", "late: deadline of 5 s
 * exceeded".
 */
export function unservedText({ reason, message }: Pick<UnservedThreshold, "reason" | "message">): string {
  return `${prefixes[reason] ?? ""}${message}`;
}
