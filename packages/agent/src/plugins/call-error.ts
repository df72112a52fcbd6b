import type { ErrorId } from "@nodekeeper/core/lib";

/** Why a call to a plugin failed, for operators. */
export interface CallError {
  message: string;
  /** ID of its entry in docs/errors.md. */
  id: ErrorId;
  /**
   * Since when all calls of the method have failed, in milliseconds since the epoch. Undefined for an error
   * that no call reported.
   */
  since?: number | undefined;
}

/**
 * Joins the errors of a plugin's last calls into one, with the ID of the first and the earliest time. Returns
 * undefined if there are none.
 */
export function joinedErrors(errors: Iterable<CallError>): CallError | undefined {
  const sorted = [...errors].sort((a, b) => (a.message < b.message ? -1 : 1));
  const [first] = sorted;
  if (!first) return undefined;
  const times = sorted.flatMap(({ since }) => (since === undefined ? [] : [since]));
  return {
    message: sorted.map(({ message }) => message).join("; "),
    id: first.id,
    since: times.length > 0 ? Math.min(...times) : undefined,
  };
}
