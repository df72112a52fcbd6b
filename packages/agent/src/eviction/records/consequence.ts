import { answerOf, conditionChanges, type Refusal, type RefusalReason } from "@nodekeeper/api/decide";
import type { RoundRecord } from "@nodekeeper/api/records";
import type { Consequence } from "../../state/index.ts";

// Refusals with these reasons are not a consequence of a round: a plugin can make any number of invalid requests, and
// requests of a plugin in dry run have no effect.
const inconsequential: ReadonlySet<RefusalReason> = new Set(["unknownPod", "nameMismatch", "dryRun"]);

/** Returns the consequence of a round, and the plugins to which its record is attributed. Pure. */
export function consequenceOf(record: RoundRecord): { consequence: Consequence; plugins: string[] } {
  const effects = pluginsOfEffects(record);
  if (effects.length > 0) return { consequence: "effect", plugins: distinct(effects) };
  const refusals = pluginsRefused(record);
  if (refusals.length > 0) return { consequence: "refusal", plugins: distinct(refusals) };
  const { refusals: all, dryRunVictims, thresholds, failures } = record.decision;
  const plugins = [...all, ...dryRunVictims, ...thresholds, ...failures].map(({ plugin }) => plugin);
  return { consequence: "none", plugins: distinct(plugins) };
}

// An unknown plugin is returned as an empty name.
function pluginsOfEffects({ input, decision }: RoundRecord): string[] {
  const { state, outcomes } = input;
  const started = new Map([...state.pending, ...state.interrupted].map(({ uid, plugin }) => [uid, plugin]));
  return [
    ...decision.victims.map(({ plugin }) => plugin),
    ...[...outcomes, ...decision.withdrawals].map(({ uid }) => started.get(uid) ?? ""),
    ...conditionChanges(state.conditions, decision.state.conditions).map(({ condition }) => condition.plugin),
  ];
}

function pluginsRefused(record: RoundRecord): string[] {
  return hardRefusals(record).map(({ plugin }) => plugin);
}

/** Returns the refusals of hard requests for pods of the node. Pure. */
export function hardRefusals({ input, decision }: RoundRecord): Refusal[] {
  const hard = new Set(
    decision.thresholds.filter(({ metType }) => metType === "hard").map(({ plugin }) => plugin),
  );
  const forced = new Set(
    input.plugins.flatMap(({ plugin, evictPods }) =>
      (answerOf(evictPods)?.pods ?? []).filter(({ force }) => force).map(({ pod }) => keyOf(plugin, pod.uid)),
    ),
  );
  const isHard = ({ plugin, uid, reason }: Refusal) =>
    !inconsequential.has(reason) && (hard.has(plugin) || forced.has(keyOf(plugin, uid)));
  return decision.refusals.filter(isHard);
}

function keyOf(plugin: string, uid: string): string {
  return `${plugin}/${uid}`;
}

function distinct(plugins: readonly string[]): string[] {
  return [...new Set(plugins)];
}
