import { BinaryReader } from "@bufbuild/protobuf/wire";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { PodReference } from "../decide/pods.ts";

/** Upper bound of pods in one answer, far above the kubelet's default of 110 pods per node. */
export const MOST_NAMED_PODS = 5_000;

/**
 * Checks the number of entries in a repeated field of an answer before it is decoded: 16 MiB of empty messages would
 * decode to gigabytes of objects. Throws `exhausted` for more than 5,000 entries, `invalid` for malformed bytes.
 * @param field the field's number in the response message
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
    throw new NodekeeperError("invalid", "the answer can't be decoded", { id: "NK1604", cause: error });
  }
  if (entries <= MOST_NAMED_PODS) return;
  throw new NodekeeperError("exhausted", `the answer names more than ${MOST_NAMED_PODS} pods`, {
    id: "NK1604",
  });
}

// The texts of an answer are stored in the record of the round.
const MOST_TEXT = 1024 * 1024;

/** Throws `exhausted` when names and reasons of an answer are longer than 1 Mi characters in total. */
export function checkAnswerText(pods: readonly (PodReference & { reason?: string })[]): void {
  let length = 0;
  for (const { uid, namespace, name, reason = "" } of pods) {
    length += uid.length + namespace.length + name.length + reason.length;
  }
  if (length <= MOST_TEXT) return;
  throw new NodekeeperError(
    "exhausted",
    `the names and reasons in the answer are longer than ${MOST_TEXT} characters`,
    { id: "NK1604" },
  );
}
