import type { Logger } from "@nodekeeper/core/lib";
import type { ConditionChange } from "../decide/condition-changes.ts";
import type { Ask, Decision, Victim } from "../decide/decision.ts";
import type { PodReference } from "../decide/pods.ts";

// A plugin that asks for other pods each round must not fill the log.
const MOST_LINES = 50;

/**
 * Writes each decision as one line of the log, with a static message and what led to it as keys: what a log pipeline
 * keeps outlives the node. What stands from one round to the next, such as a refusal, is written when it starts.
 */
export class DecisionLog {
  readonly #log: Logger;
  #standing: ReadonlySet<string> = new Set();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Conditions that plugins started or stopped to have. */
  writeConditions(round: number, changes: readonly ConditionChange[]): void {
    for (const { kind, condition } of changes) {
      const { plugin, target, name, effects, cause } = condition;
      const fields = {
        round,
        plugin,
        target,
        condition: name,
        effects,
        ...(cause === undefined ? {} : { cause }),
      };
      this.#log.info(fields, kind === "set" ? "condition set" : "condition cleared");
    }
  }

  /** To be called once a round, whether it could be recorded or not, before anything is done about it. At most 50 lines, those of victims not counted. */
  write(round: number, decision: Decision): void {
    const { victims, dryRunVictims, withdrawals, refusals, ranking } = decision;
    const candidates = ranking.length;
    const ranks = new Map(ranking.map(({ uid, rank }) => [uid, rank]));
    const details = (victim: Victim) => ({
      ...victimDetails(victim),
      rank: ranks.get(victim.uid),
      candidates,
    });
    for (const victim of victims) this.#log.info({ round, ...details(victim) }, "pod selected for eviction");

    const standing = new Set<string>();
    let lines = 0;
    const once = (key: readonly string[], fields: () => object, message: string) => {
      const text = JSON.stringify([message, ...key]);
      standing.add(text);
      if (this.#standing.has(text)) return;
      lines++;
      if (lines <= MOST_LINES) this.#log.info({ round, ...fields() }, message);
    };
    for (const victim of dryRunVictims) {
      const fields = () => details(victim);
      once([victim.uid, victim.plugin], fields, "pod would be selected for eviction, plugin is in dry run");
    }
    for (const withdrawal of withdrawals) {
      const fields = () => ({ ...podDetails(withdrawal), reason: withdrawal.reason });
      once([withdrawal.uid], fields, "eviction no longer requested");
    }
    for (const { plugin, reason, message, ...pod } of refusals) {
      const fields = () => ({ ...podDetails(pod), plugin, reason, detail: message });
      once([pod.uid, plugin, reason], fields, "requested eviction refused");
    }
    if (lines > MOST_LINES) {
      this.#log.info(
        { round, decisions: lines - MOST_LINES },
        "more decisions than the log takes in one round",
      );
    }
    this.#standing = standing;
  }
}

function podDetails({ uid, namespace, name }: PodReference) {
  return { pod: { namespace, name }, podUid: uid };
}

function victimDetails(victim: Victim) {
  const { plugin, kind, scope, reason, order, gracePeriodSeconds, asks } = victim;
  return {
    ...podDetails(victim),
    ...{ plugin, kind, scope, reason, order, gracePeriodSeconds },
    ...thresholdDetails(asks[0]),
  };
}

function thresholdDetails(ask: Ask | undefined) {
  if (!ask?.threshold) return {};
  const { observedValue, thresholdValue, operator, unit } = ask.threshold;
  return { observedValue, thresholdValue, operator, ...(unit ? { unit } : {}) };
}
