import type { ErrorId } from "@nodekeeper/core/lib";

/** Why a call to a plugin failed, for operators. */
export interface CallError {
  message: string;
  /** Its entry in docs/errors.md. */
  id: ErrorId;
}

/** The errors of a plugin's last calls as one, with the id of the first; undefined if there are none. */
export function joinedErrors(errors: Iterable<CallError>): CallError | undefined {
  const sorted = [...errors].sort((a, b) => (a.message < b.message ? -1 : 1));
  const [first] = sorted;
  return first && { message: sorted.map(({ message }) => message).join("; "), id: first.id };
}
