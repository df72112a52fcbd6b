import { deflateSync, inflateSync } from "node:zlib";
import {
  type DecideInput,
  type Decision,
  type EvictionPod,
  type PluginAnswers,
  type RankedCandidate,
  type RankKeyName,
  rankOrder,
  referenceTo,
} from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import { NodekeeperError } from "@nodekeeper/core/lib";

// A low level, because compression runs between the decision and acting on it.
const COMPRESSION = { level: 3 };
const NOT_ASKED = "no plugin requested it";
/** A round that shares a smaller fraction of its pods with the base gets a new base. */
const LEAST_SHARED = 0.8;
const LARGEST_UNPACKED = 256 * 1024 * 1024;

/** Pods that several rounds share, and the ID of this base in the store. */
export interface PodBase {
  id: number;
  pods: ReadonlyMap<string, EvictionPod>;
}

/**
 * The encoded part of a round: only pods that differ from the base, and only ranked candidates that are requested or
 * have a reason.
 */
interface PackedRound {
  input: Omit<DecideInput, "pods">;
  decision: Decision;
  changed: EvictionPod[];
  removed: string[];
}

/** Encodes the pods of a base. */
export function packBase(pods: readonly EvictionPod[]): Uint8Array {
  return pack(pods);
}

/** Decodes the pods of a base. Throws `corrupt` for malformed bytes. */
export function unpackBase(bytes: Uint8Array): EvictionPod[] {
  const pods = unpack(bytes, "the recorded pods");
  if (Array.isArray(pods)) return pods as EvictionPod[];
  throw new NodekeeperError("corrupt", "the recorded pods are not a list");
}

/**
 * Returns whether at least 80% of the pods are those of the base. Compares pods by identity: unchanged pods are the
 * same objects.
 */
export function sharesEnough(base: PodBase, pods: readonly EvictionPod[]): boolean {
  const same = pods.filter((pod) => base.pods.get(pod.uid) === pod).length;
  return same >= Math.max(base.pods.size, pods.length) * LEAST_SHARED;
}

/** Encodes a round relative to its base. */
export function packRound({ input, decision }: RoundRecord, base: PodBase["pods"]): Uint8Array {
  const { pods, ...rest } = input;
  const present = new Set(pods.map((pod) => pod.uid));
  const packed: PackedRound = {
    input: rest,
    decision: { ...decision, ranking: decision.ranking.filter((one) => !isOrdinary(one)) },
    changed: pods.filter((pod) => base.get(pod.uid) !== pod),
    removed: [...base.keys()].filter((uid) => !present.has(uid)),
  };
  return pack(packed);
}

/** Decodes a round. Throws `corrupt` for malformed bytes. */
export function unpackRound(id: number, bytes: Uint8Array, base: readonly EvictionPod[]): RoundRecord {
  const packed = unpack(bytes, `round ${id}`) as PackedRound;
  const { input: { outcomes } = {}, decision: { ranking, withdrawals } = {} } = packed ?? {};
  if (![packed?.changed, ranking, withdrawals, outcomes].every(Array.isArray)) {
    throw new NodekeeperError("corrupt", `round ${id} is incomplete`);
  }
  const { input, decision, changed, removed } = packed;
  const left = new Map(base.map((pod) => [pod.uid, pod]));
  for (const uid of removed) left.delete(uid);
  for (const pod of changed) left.set(pod.uid, pod);
  const pods = [...left.values()];
  const record = { id, input: { ...input, pods }, decision };
  const whole = wholeRanking(record.decision, pods, record.input.policy.ranking);
  return { ...record, decision: { ...record.decision, ranking: whole } };
}

/** Decodes the plugins' answers of a round, without its pods. Throws `corrupt` for malformed bytes. */
export function unpackAnswers(id: number, bytes: Uint8Array): PluginAnswers[] {
  const { input } = (unpack(bytes, `round ${id}`) ?? {}) as Partial<PackedRound>;
  if (Array.isArray(input?.plugins)) return input.plugins;
  throw new NodekeeperError("corrupt", `round ${id} is incomplete`);
}

function isOrdinary({ outcome, why }: RankedCandidate): boolean {
  return outcome === "notAsked" && why === NOT_ASKED;
}

// Candidates without a request are not stored. They occupy the remaining ranks in rank order.
function wholeRanking(
  { ranking, exclusions }: Decision,
  pods: readonly EvictionPod[],
  keys: readonly RankKeyName[],
): RankedCandidate[] {
  const stored = new Set([...ranking, ...exclusions].map(({ uid }) => uid));
  const rest = pods
    .filter((pod) => !stored.has(pod.uid))
    .map((pod) => ({ pod, scope: null }))
    .sort(rankOrder(keys));
  const whole = new Map(ranking.map((one) => [one.rank, one]));
  let rank = 0;
  for (const { pod } of rest) {
    do rank++;
    while (whole.has(rank));
    const { qosLevel, qosClass, priority } = pod;
    const place = { rank, qosLevel, qosClass, priority, scope: null, kind: null };
    whole.set(rank, { ...referenceTo(pod), ...place, outcome: "notAsked", why: NOT_ASKED });
  }
  return [...whole.values()].sort((a, b) => a.rank - b.rank);
}

function pack(value: unknown): Uint8Array {
  return deflateSync(JSON.stringify(value), COMPRESSION);
}

function unpack(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(inflateSync(bytes, { maxOutputLength: LARGEST_UNPACKED }).toString());
  } catch (error) {
    throw new NodekeeperError("corrupt", `${what} can't be read`, { cause: error });
  }
}
