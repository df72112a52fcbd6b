import {
  type Ask,
  type ConditionChange,
  conditionChangeText,
  type Decision,
  type PodReference,
  type Victim,
} from "@nodekeeper/api/decide";
import type { Logger } from "@nodekeeper/core/lib";
import type { NewMark } from "../../state/index.ts";

// Bounds the log if a plugin requests different pods each round.
const MOST_LINES = 50;

/**
 * Logs each decision in one line, with a static message and the reasons as keys, so that log pipelines can keep
 * decisions beyond the node's lifetime. A decision that repeats in consecutive rounds, such as a refusal, is logged
 * once. Returns the logged decisions as marks of the timeline.
 */
export class DecisionLog {
  readonly #log: Logger;
  #standing: ReadonlySet<string> = new Set();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs conditions that were set or cleared. */
  writeConditions(round: number, changes: readonly ConditionChange[]): NewMark[] {
    return changes.map((change) => {
      const { kind, condition } = change;
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
      const title = conditionChangeText(change);
      return { kind: kind === "set" ? "conditionSet" : "conditionCleared", title, plugin, round };
    });
  }

  /**
   * Logs a round's decision: at most 50 lines, not counting those of victims. Call once per round before acting on it,
   * even if the round could not be recorded.
   */
  write(round: number, decision: Decision): NewMark[] {
    const { victims, dryRunVictims, withdrawals, refusals, ranking } = decision;
    const candidates = ranking.length;
    const ranks = new Map(ranking.map(({ uid, rank }) => [uid, rank]));
    const details = (victim: Victim) => ({
      ...victimDetails(victim),
      rank: ranks.get(victim.uid),
      candidates,
    });
    const marks: NewMark[] = [];
    const mark = (kind: MarkKind, pod: PodReference, text: string, plugin?: string) =>
      marks.push(markOf({ kind, pod, text, round, plugin }));
    for (const victim of victims) {
      this.#log.info({ round, ...details(victim) }, "pod selected for eviction");
      mark("evictionSelected", victim, `selected for eviction: ${victim.reason}`, victim.plugin);
    }

    const standing = new Set<string>();
    let lines = 0;
    const once = (key: readonly string[], message: string, write: (message: string) => void) => {
      const text = JSON.stringify([message, ...key]);
      standing.add(text);
      if (this.#standing.has(text)) return;
      lines++;
      if (lines <= MOST_LINES) write(message);
    };
    for (const victim of dryRunVictims) {
      const { uid, plugin, reason } = victim;
      once([uid, plugin], "pod would be selected for eviction, plugin is in dry run", (message) => {
        this.#log.info({ round, ...details(victim) }, message);
        mark("evictionDryRun", victim, `would be selected for eviction, in dry run: ${reason}`, plugin);
      });
    }
    for (const withdrawal of withdrawals) {
      const { uid, reason } = withdrawal;
      once([uid], "eviction no longer requested", (message) => {
        this.#log.info({ round, ...podDetails(withdrawal), reason }, message);
        mark("evictionWithdrawn", withdrawal, `eviction no longer requested: ${reason}`);
      });
    }
    for (const { plugin, reason, message: detail, ...pod } of refusals) {
      once([pod.uid, plugin, reason], "requested eviction refused", (message) => {
        this.#log.info({ round, ...podDetails(pod), plugin, reason, detail }, message);
        mark("evictionRefused", pod, `requested eviction refused: ${detail}`, plugin);
      });
    }
    if (lines > MOST_LINES) {
      this.#log.info(
        { round, decisions: lines - MOST_LINES },
        "further decisions of this round are not logged",
      );
    }
    this.#standing = standing;
    return marks;
  }
}

type MarkKind = NewMark["kind"];

interface PodMark {
  kind: MarkKind;
  pod: PodReference;
  text: string;
  round?: number | undefined;
  plugin?: string | undefined;
}

/** Returns a mark about a pod with the title "default/web <text>". */
export function markOf({ kind, pod: { uid, namespace, name }, text, round, plugin }: PodMark): NewMark {
  return {
    kind,
    title: `${namespace}/${name} ${text}`,
    pod: { uid, namespace, name },
    ...(plugin === undefined ? {} : { plugin }),
    ...(round === undefined ? {} : { round }),
  };
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
