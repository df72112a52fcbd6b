import {
  type EvictionPolicy,
  isDryRun,
  isFullDryRun,
  type MetThreshold,
  thresholdRuleText,
  type UnservedReason,
} from "@nodekeeper/api/decide";
import { HardThresholdUnserved } from "@nodekeeper/api/errors";
import { timeOf, unservedText } from "@nodekeeper/api/wording";
import type { HealthCheck, HealthResult } from "@nodekeeper/core/lib";
import type { DesiredNodeCondition } from "./act/node-condition.ts";

/** The Node condition `EvictionBlocked`, as a round uses it. */
export interface BlockedCondition {
  setDesired(desired: DesiredNodeCondition | undefined): void;
  readonly lastError: string | undefined;
}

/** The result of a round that shows which requested evictions are not possible. */
export interface RoundBlockages {
  thresholds: readonly MetThreshold[];
  policy: Pick<EvictionPolicy, "dryRunPlugins">;
  /** Why the agent can't evict any pod; undefined if it can. */
  forbidden: string | undefined;
  /** As in `Tainter.setDesired`. The condition is not set to False before the first complete round after a start. */
  isComplete: boolean;
  /** Wall milliseconds. */
  now: number;
}

// How long a threshold must be without an evictable pod before the condition reports it, milliseconds. A single late
// call does not change the condition.
const LASTS_MS = 60_000;
// Bound the condition's message.
const MOST_NAMED = 5;
const LONGEST_MESSAGE = 1_000;
// The condition's reasons, most urgent first. Other clients read them.
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

/**
 * A confirmed hard threshold for which no pod may be selected. `text` is created again only if another field changes,
 * not for each observed value.
 */
interface Blocked {
  plugin: string;
  scope: string;
  reason: UnservedReason;
  since: number;
  /** The pods that the plugin could not choose, as JSON. */
  notOffered: string;
  text: string;
}

/**
 * Reports requested evictions that are not possible: in a health check, which passes with a warning, and in the Node
 * condition `EvictionBlocked` if the cause lasts for a minute. The condition reports a missing right immediately.
 *
 * 1. The text of a threshold changes only if its reason, the start of the reason, or the pods that are not offered
 *    change. It does not change with each observed value.
 * 2. Thresholds of plugins in dry run appear only in the health check. In full dry run the Node is not changed.
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

  /**
   * Always passes, with a warning while a confirmed hard threshold has no pod that may be selected: a plugin must not
   * make the agent unready.
   */
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
      errorId: HardThresholdUnserved.id,
    };
  }
}

function blockedOf(threshold: MetThreshold, before: readonly Blocked[]): Blocked[] {
  const { plugin, scope, unserved } = threshold;
  if (unserved === undefined) return [];
  const { reason, since } = unserved;
  const notOffered = JSON.stringify(unserved.notOffered ?? []);
  const known = before.find(
    (one) =>
      one.plugin === plugin &&
      one.scope === scope &&
      one.reason === reason &&
      one.since === since &&
      one.notOffered === notOffered,
  );
  if (known) return [known];
  const rule = thresholdRuleText(scope, threshold);
  const text = `${plugin}: ${rule} is met and no pod may be selected since ${timeOf(since)}: ${unservedText(unserved)}`;
  return [{ plugin, scope, reason, since, notOffered, text }];
}
