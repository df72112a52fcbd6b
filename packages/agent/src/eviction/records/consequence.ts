import type { Consequence } from "../../state/index.ts";
import { answerOf } from "../decide/answers.ts";
import { conditionChanges } from "../decide/condition-changes.ts";
import type { Refusal } from "../decide/decision.ts";
import type { RefusalReason } from "../decide/refusals.ts";
import type { RoundRecord } from "../replay/round-record.ts";

// A plugin can invent such requests without end; those of a plugin in dry run have no consequence by definition.
const inconsequential: ReadonlySet<RefusalReason> = new Set(["unknownPod", "nameMismatch", "dryRun"]);

/** What followed from a round, and the plugins that caused it: the record is kept on their account. Pure. */
export function consequenceOf(record: RoundRecord): { consequence: Consequence; plugins: string[] } {
  const effects = pluginsOfEffects(record);
  if (effects.length > 0) return { consequence: "effect", plugins: distinct(effects) };
  const refusals = pluginsRefused(record);
  if (refusals.length > 0) return { consequence: "refusal", plugins: distinct(refusals) };
  const { refusals: all, dryRunVictims, thresholds, failures } = record.decision;
  const plugins = [...all, ...dryRunVictims, ...thresholds, ...failures].map(({ plugin }) => plugin);
  return { consequence: "none", plugins: distinct(plugins) };
}

// Empty for a plugin that is not known.
function pluginsOfEffects({ input, decision }: RoundRecord): string[] {
  const { state, outcomes } = input;
  const started = new Map([...state.pending, ...state.interrupted].map(({ uid, plugin }) => [uid, plugin]));
  return [
    ...decision.victims.map(({ plugin }) => plugin),
    ...[...outcomes, ...decision.withdrawals].map(({ uid }) => started.get(uid) ?? ""),
    ...conditionChanges(state.conditions, decision.state.conditions).map(({ condition }) => condition.plugin),
  ];
}

function pluginsRefused({ input, decision }: RoundRecord): string[] {
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
  return decision.refusals.filter(isHard).map(({ plugin }) => plugin);
}

function keyOf(plugin: string, uid: string): string {
  return `${plugin}/${uid}`;
}

function distinct(plugins: readonly string[]): string[] {
  return [...new Set(plugins)];
}
