import { BinaryReader } from "@bufbuild/protobuf/wire";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { PodReference } from "../decide/pods.ts";

/** More pods than any node has. */
export const MOST_NAMED_PODS = 5_000;

/**
 * Throws `exhausted` when a repeated field of an undecoded answer has more than 5,000 entries. Decoding first would
 * be too late: 16 MiB of empty messages become gigabytes of objects. Throws `invalid` for what is no message.
 */
export function checkAnswerSize(answer: Uint8Array, field: number): void {
  const reader = new BinaryReader(answer);
  let entries = 0;
  try {
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (number === field) entries++;
      if (entries > MOST_NAMED_PODS) break;
      reader.skip(type, number);
    }
  } catch (error) {
    throw new NodekeeperError("invalid", "the answer can't be decoded", { cause: error });
  }
  if (entries <= MOST_NAMED_PODS) return;
  throw new NodekeeperError("exhausted", `the answer names more than ${MOST_NAMED_PODS} pods`);
}

// All that a plugin may have to say about the pods it names; it goes into the records of the round.
const MOST_TEXT = 1024 * 1024;

/** Throws `exhausted` when what an answer says of pods is longer than 1 Mi characters in all. */
export function checkAnswerText(pods: readonly (PodReference & { reason?: string })[]): void {
  let length = 0;
  for (const { uid, namespace, name, reason = "" } of pods) {
    length += uid.length + namespace.length + name.length + reason.length;
  }
  if (length <= MOST_TEXT) return;
  throw new NodekeeperError(
    "exhausted",
    `the names and reasons in the answer are longer than ${MOST_TEXT} characters`,
  );
}
