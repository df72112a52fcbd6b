import type { HealthCheck, HealthResult } from "@nodekeeper/core/lib";
import type { DesiredNodeCondition } from "./act/node-condition.ts";
import type { MetThreshold, UnservedReason } from "./decide/decision.ts";
import { type EvictionPolicy, isDryRun, isFullDryRun } from "./decide/policy.ts";
import { thresholdRuleText } from "./decide/threshold-text.ts";
import { timeOf } from "./wording/time.ts";
import { unservedText } from "./wording/unserved.ts";

/** The Node's condition as a round sees it. */
export interface BlockedCondition {
  setDesired(desired: DesiredNodeCondition | undefined): void;
  readonly lastError: string | undefined;
}

/** What a round knows about evictions that are requested and not possible. */
export interface RoundBlockages {
  thresholds: readonly MetThreshold[];
  policy: Pick<EvictionPolicy, "dryRunPlugins">;
  /** Why the agent can't evict any pod; undefined if it can. */
  forbidden: string | undefined;
  /** Whether the plugins of before a restart have answered: until then the condition is not set to False. */
  isComplete: boolean;
  /** Wall milliseconds. */
  now: number;
}

// A threshold for which no pod may be selected for less than this is not a condition of the Node, milliseconds: a single late
// call must not change it.
const LASTS_MS = 60_000;
// Bounds the condition's message.
const MOST_NAMED = 5;
const LONGEST_MESSAGE = 1_000;
// The condition's reasons, which are part of what other clients read: most urgent first.
const reasons: readonly (readonly [UnservedReason, string])[] = [
  ["failed", "PluginFailed"],
  ["late", "PluginLate"],
  ["namedIneligible", "NoNamedPodEvictable"],
  ["fallbackOff", "FallbackOff"],
  ["scopeUnknown", "ScopeUnknown"],
  ["namedNone", "NoPodNamed"],
  ["noEligiblePod", "NoPodEvictable"],
  ["nodeLimit", "NodeLimitReached"],
];
const MISSING_RIGHT = "MissingRight";
const POSSIBLE = "EvictionPossible";

/** A threshold for which no pod may be selected, with the text of when its reason was last another. */
interface Blocked {
  plugin: string;
  scope: string;
  reason: UnservedReason;
  since: number;
  text: string;
}

/**
 * States why evictions that are requested are not possible: in a health check, which passes with a warning, and, for what
 * lasts a minute, in the Node's condition `EvictionBlocked`. A missing right is in the condition at once.
 *
 * 1. The text about a threshold changes only with its reason or its time, not with each observed value.
 * 2. Thresholds of plugins in dry run are in the health check alone. In full dry run the Node is left as it is.
 */
export class BlockedEvictions {
  readonly #condition: BlockedCondition;
  #blocked: readonly Blocked[] = [];

  constructor(condition: BlockedCondition) {
    this.#condition = condition;
  }

  /** Call at the end of each round. */
  note(round: RoundBlockages): void {
    const before = this.#blocked;
    this.#blocked = round.thresholds.flatMap((threshold) => blockedOf(threshold, before));
    if (isFullDryRun(round.policy)) this.#condition.setDesired(undefined);
    else {
      const desired = this.#desired(round);
      if (desired.status === "True" || round.isComplete) this.#condition.setDesired(desired);
    }
  }

  /** Passes, with a warning while no pod may be selected for a confirmed hard threshold: a plugin must not make the agent unready. */
  healthCheck(): HealthCheck {
    return { name: "EvictionVictimsFound", kind: "ready", check: () => this.#check() };
  }

  #desired({ policy, forbidden, now }: RoundBlockages): DesiredNodeCondition {
    const lasting = this.#blocked.filter(
      ({ plugin, since }) => now - since >= LASTS_MS && !isDryRun(policy, plugin),
    );
    const first = reasons.find(([reason]) => lasting.some((one) => one.reason === reason));
    const texts = lasting.map(({ text }) => text);
    const shown = [...(forbidden === undefined ? [] : [`no pod can be evicted: ${forbidden}`]), ...texts];
    if (shown.length === 0) {
      return {
        status: "False",
        reason: POSSIBLE,
        message: "no met threshold lacks a pod that may be evicted, and no right is missing",
      };
    }
    const more = shown.length > MOST_NAMED ? [`${shown.length - MOST_NAMED} more`] : [];
    const message = [...shown.slice(0, MOST_NAMED), ...more].join("; ").slice(0, LONGEST_MESSAGE);
    return { status: "True", reason: forbidden === undefined ? first![1] : MISSING_RIGHT, message };
  }

  #check(): HealthResult {
    const error = this.#condition.lastError;
    const warnings = this.#blocked.map(({ text }) => text);
    if (error !== undefined) warnings.push(`the Node's condition can't be written: ${error}`);
    const message = "no met hard threshold lacks a pod that may be evicted";
    if (warnings.length === 0) return { ok: true, message };
    const warning = warnings.join("; ").slice(0, 2 * LONGEST_MESSAGE);
    return {
      ok: true,
      message: "a met hard threshold has no pod that may be evicted",
      warning,
      errorId: "NK1617",
    };
  }
}

function blockedOf(threshold: MetThreshold, before: readonly Blocked[]): Blocked[] {
  const { plugin, scope, unserved } = threshold;
  if (unserved === undefined) return [];
  const { reason, since } = unserved;
  const known = before.find(
    (one) => one.plugin === plugin && one.scope === scope && one.reason === reason && one.since === since,
  );
  if (known) return [known];
  const rule = thresholdRuleText(scope, threshold);
  const text = `${plugin}: ${rule} is met and no pod may be selected since ${timeOf(since)}: ${unservedText(unserved)}`;
  return [{ plugin, scope, reason, since, text }];
}
