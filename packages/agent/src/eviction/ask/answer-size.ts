import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { PodReference } from "@nodekeeper/api/decide";
import { EvictionAnswerRefused } from "@nodekeeper/api/errors";
import { checkEntries, type RepeatedFields } from "@nodekeeper/core/grpc";
import { NodekeeperError } from "@nodekeeper/core/lib";

/** Upper bound of pods in one answer, far above the kubelet's default of 110 pods per node. */
export const MOST_NAMED_PODS = 5_000;
// Upper bound of decoded fields in an answer, at all levels. 5,000 pods with their metadata have far fewer.
const MOST_ENTRIES = 300_000;

/** The field of an answer that names pods, and the fields that are decoded. */
export interface AnswerShape {
  /** The number of the repeated field with pods. */
  pods: number;
  decoded: RepeatedFields;
}

const metadata: RepeatedFields = { 1: { 1: {} } };
const condition: RepeatedFields = { 2: {} };

/** The answers to the calls of a round, by field number. */
export const answerShapes = {
  getEvictPods: { pods: 1, decoded: { 1: { 1: metadata }, 2: condition } },
  thresholdMet: { pods: 8, decoded: { 7: condition, 8: metadata } },
  getTopEvictionPods: { pods: 1, decoded: { 1: metadata } },
} satisfies Record<string, AnswerShape>;

/**
 * Checks the number of pods and fields in an answer before it is decoded: 16 MiB of empty messages would decode to
 * gigabytes of objects. Throws `exhausted` for more than 5,000 pods or more fields than any valid answer needs, and
 * `invalid` for malformed bytes.
 */
export function checkAnswerSize(answer: Uint8Array, { pods: field, decoded }: AnswerShape): void {
  try {
    if (podsIn(answer, field) > MOST_NAMED_PODS)
      throw new NodekeeperError("exhausted", `the answer names more than ${MOST_NAMED_PODS} pods`);
    checkEntries(answer, decoded, MOST_ENTRIES, "entries");
  } catch (error) {
    const failure = error instanceof NodekeeperError ? error : undefined;
    const message = failure?.code === "exhausted" ? failure.message : "the answer can't be decoded";
    throw new EvictionAnswerRefused({ problem: message }, { cause: error, code: failure?.code ?? "invalid" });
  }
}

/** Returns the number of pods that an answer names. Stops counting if there are too many pods or too many fields. */
function podsIn(answer: Uint8Array, field: number): number {
  const reader = new BinaryReader(answer);
  let pods = 0;
  for (
    let fields = 0;
    reader.pos < reader.len && pods <= MOST_NAMED_PODS && fields < MOST_ENTRIES;
    fields++
  ) {
    const [number, type] = reader.tag();
    if (number === field) pods++;
    reader.skip(type, number);
  }
  return pods;
}

// Bounds the text of an answer, which is stored in the record of the round. Characters.
const MOST_TEXT = 1024 * 1024;

/** Throws `exhausted` if the names and reasons of an answer exceed 1 Mi characters in total. */
export function checkAnswerText(pods: readonly (PodReference & { reason?: string })[]): void {
  let length = 0;
  for (const { uid, namespace, name, reason = "" } of pods) {
    length += uid.length + namespace.length + name.length + reason.length;
  }
  if (length <= MOST_TEXT) return;
  throw new EvictionAnswerRefused(
    { problem: `the names and reasons in the answer are longer than ${MOST_TEXT} characters` },
    { code: "exhausted" },
  );
}
