import type { Logger } from "@nodekeeper/core/lib";
import type { ConditionChange } from "../decide/condition-changes.ts";
import type { Ask, Decision, Victim } from "../decide/decision.ts";
import type { PodReference } from "../decide/pods.ts";

// Bounds the log when a plugin requests different pods each round.
const MOST_LINES = 50;

/**
 * Logs each decision in one line, with a static message and the reasons as keys, so that a log pipeline keeps them
 * beyond the node's lifetime. A decision that stays the same over rounds, such as a refusal, is logged once.
 */
export class DecisionLog {
  readonly #log: Logger;
  #standing: ReadonlySet<string> = new Set();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs conditions that were set or cleared. */
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

  /**
   * Logs a round's decision: at most 50 lines besides those of victims. Call once per round, before acting on it, also
   * when the round could not be recorded.
   */
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
        "further decisions of this round are not logged",
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
