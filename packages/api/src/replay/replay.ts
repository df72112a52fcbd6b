import {
  type Decision,
  decide,
  type EvictionPolicy,
  type PodReference,
  type RefusalReason,
  type Victim,
} from "../decide/index.ts";
import { refusalReasons } from "../reasons/index.ts";
import type { RoundRecord } from "../records/index.ts";
import { type OpenQuestions, openQuestions } from "./open-questions.ts";

/** A victim in a comparison. */
export type ReplayedVictim = PodReference & Pick<Victim, "plugin" | "reason" | "gracePeriodSeconds">;

/** The comparison of a recorded round with its decision under another policy. */
export interface ReplayedRound extends OpenQuestions {
  id: number;
  /** Wall milliseconds. */
  at: number;
  before: ReplayedVictim[];
  after: ReplayedVictim[];
  /** Recorded victims that would not have been evicted, with the reason. */
  notEvicted: (PodReference & { why: string })[];
  /** Additional pods that would have been evicted, with the reason. */
  added: (PodReference & { why: string })[];
  /**
   * Pods that would have been evicted if no plugin were in dry run, but only by the recorded decision (`missing`) or
   * only by the other one (`added`). `why` is null if limits or the ranking are the reason.
   */
  dryRun: { missing: (PodReference & { why: string | null })[]; added: PodReference[] };
  /** Victims of both decisions, also those in dry run, whose grace period differs. */
  graceChanged: (PodReference & { before: number | null; after: number | null })[];
  /** The numbers of refusals that differ, by reason: [recorded, replayed]. */
  refusals: Partial<Record<RefusalReason, [number, number]>>;
  /** Taints as "key:effect": those that would not have been set, and additional ones. */
  taints: { missing: string[]; added: string[] };
}

/** The comparison of all recorded rounds. */
export interface Replay {
  rounds: number;
  /** Rounds with any difference. */
  differing: ReplayedRound[];
  /** Rounds without a known difference, in which a GetTopEvictionPods call would have differed. */
  uncertain: number;
  victimsBefore: number;
  victimsAfter: number;
  /** Additional victims if no plugin were in dry run. A pod counts in each round, because it is not evicted. */
  dryRunBefore: number;
  dryRunAfter: number;
}

/**
 * Runs `decide` on recorded inputs with another policy. Each round starts from its own recorded state: the effects of
 * an earlier difference are not simulated, because the plugins' answers to them are unknown. Pure.
 */
export function replay(records: Iterable<RoundRecord>, policy: EvictionPolicy): Replay {
  const result = emptyReplay();
  for (const record of records) addToReplay(result, record, policy);
  return result;
}

export function emptyReplay(): Replay {
  const victims = { victimsBefore: 0, victimsAfter: 0, dryRunBefore: 0, dryRunAfter: 0 };
  return { rounds: 0, differing: [], uncertain: 0, ...victims };
}

/** Replays another round and adds it to a result. If a malformed record throws, the result is unchanged. */
export function addToReplay(result: Replay, record: RoundRecord, policy: EvictionPolicy): void {
  const { input, decision } = record;
  const after = decide({ ...input, policy });
  const round = { ...compare(record, after), ...openQuestions(input, policy) };
  result.rounds++;
  result.victimsBefore += round.before.length;
  result.victimsAfter += round.after.length;
  result.dryRunBefore += decision.dryRunVictims.length;
  result.dryRunAfter += after.dryRunVictims.length;
  if (differs(round)) result.differing.push(round);
  else if (round.unasked.length + round.otherOffer.length > 0) result.uncertain++;
}

type Comparison = Omit<ReplayedRound, keyof OpenQuestions>;

function compare({ id, input, decision }: RoundRecord, after: Decision): Comparison {
  const before = new Map(decision.victims.map((victim) => [victim.uid, victim]));
  const now = new Map(after.victims.map((victim) => [victim.uid, victim]));
  const why = whyIn(after);
  const place = (victim: Victim) => ({ ...referenceOf(victim), why: why(victim.uid) });
  const selectedBefore = selectedIn(decision);
  const selectedAfter = selectedIn(after);
  return {
    id,
    at: input.now,
    before: decision.victims.map(shown),
    after: after.victims.map(shown),
    notEvicted: decision.victims.filter(({ uid }) => !now.has(uid)).map(place),
    added: after.victims.filter(({ uid }) => !before.has(uid)).map(place),
    dryRun: {
      missing: decision.dryRunVictims
        .filter(({ uid }) => !selectedAfter.has(uid))
        .map(place)
        .map((pod) => ({ ...pod, why: pod.why === refusalReasons.dryRun ? null : pod.why })),
      added: after.dryRunVictims.filter(({ uid }) => !selectedBefore.has(uid)).map(referenceOf),
    },
    graceChanged: [...selectedAfter.values()].flatMap((victim) => {
      const old = selectedBefore.get(victim.uid);
      if (old === undefined || old.gracePeriodSeconds === victim.gracePeriodSeconds) return [];
      return { ...referenceOf(victim), before: old.gracePeriodSeconds, after: victim.gracePeriodSeconds };
    }),
    refusals: differentCounts(decision.refusalCounts, after.refusalCounts),
    taints: compareTaints(decision, after),
  };
}

// The victims by UID, also those that are not evicted because of dry run.
function selectedIn({ victims, dryRunVictims }: Decision): Map<string, Victim> {
  return new Map([...victims, ...dryRunVictims].map((victim) => [victim.uid, victim]));
}

function differs(round: Comparison): boolean {
  const { notEvicted, added, dryRun, graceChanged, refusals, taints } = round;
  const lists = [
    ...[notEvicted, added, dryRun.missing, dryRun.added],
    ...[graceChanged, Object.keys(refusals), taints.missing, taints.added],
  ];
  return lists.some((list) => list.length > 0) || orderOf(round.before) !== orderOf(round.after);
}

function orderOf(victims: readonly PodReference[]): string {
  return victims.map((victim) => victim.uid).join(" ");
}

function whyIn({ ranking, exclusions }: Decision): (uid: string) => string {
  const reasons = new Map(ranking.map(({ uid, why }) => [uid, why]));
  for (const { uid, detail } of exclusions) reasons.set(uid, `not a candidate: ${detail}`);
  return (uid) => reasons.get(uid) ?? "the pod did not exist";
}

function differentCounts(
  before: Decision["refusalCounts"],
  after: Decision["refusalCounts"],
): ReplayedRound["refusals"] {
  const reasons = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<RefusalReason>;
  const counts: ReplayedRound["refusals"] = {};
  for (const reason of [...reasons].sort()) {
    const pair: [number, number] = [before[reason] ?? 0, after[reason] ?? 0];
    if (pair[0] !== pair[1]) counts[reason] = pair;
  }
  return counts;
}

function compareTaints(before: Decision, after: Decision): ReplayedRound["taints"] {
  const [old, fresh] = [taintNames(before), taintNames(after)];
  return {
    missing: [...old].filter((name) => !fresh.has(name)),
    added: [...fresh].filter((name) => !old.has(name)),
  };
}

function taintNames({ taints }: Decision): Set<string> {
  const node = taints.node.map(({ key, effect }) => `${key}:${effect}`);
  const custom = taints.customNodeResource.map(({ qosLevel, key, effect }) => `${qosLevel} ${key}:${effect}`);
  return new Set([...node, ...custom]);
}

function shown({ uid, namespace, name, plugin, reason, gracePeriodSeconds }: Victim): ReplayedVictim {
  return { uid, namespace, name, plugin, reason, gracePeriodSeconds };
}

function referenceOf({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
