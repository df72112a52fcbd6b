import type { ErrorId } from "@nodekeeper/core/lib";

/** Why a call to a plugin failed, for operators. */
export interface CallError {
  message: string;
  /** Its entry in docs/errors.md. */
  id: ErrorId;
  /** Wall milliseconds: since when each call of the method failed; undefined for what no call reports. */
  since?: number | undefined;
}

/** The errors of a plugin's last calls as one, with the id of the first and the earliest time; undefined if there are none. */
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
