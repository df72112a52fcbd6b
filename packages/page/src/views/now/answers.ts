import { isDryRun, thresholdText } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import {
  counted,
  missingLines,
  outcomeText,
  refusalWord,
  timeOf,
  whyNoPodText,
} from "@nodekeeper/api/wording";
import type { Live } from "../../live.ts";
import type { Tone } from "../../parts/badge.tsx";
import { age } from "../../text.ts";
import { HOUR_MS, isInProgress, type LastHour, ofLastHour } from "./last-hour.ts";

type Budgets = ApiAnswers["eviction/budgets"];

/** One sentence of an answer. Times in it are in UTC, for `Prose`. */
export interface Line {
  tone: Tone;
  text: string;
}

/** Input of the answers. Undefined members are not known yet. */
export interface Facts {
  live: Pick<Live, "node" | "connection" | "eviction/budgets" | "eviction/node">;
  evictions: LastHour | undefined;
  /** Wall milliseconds of the node. */
  now: number;
}

/** Returns `now`; if the agent is silent, the time of its last message, after which nothing is known. */
export function knownAt({ connection }: Facts["live"], now: number): number {
  return connection.state === "lost" ? Math.min(now, connection.at) : now;
}

/** Returns what is wrong, most urgent first; if nothing is, one line that says so. Empty while that is unknown. */
export function wrongLines({ live, now }: Facts): Line[] {
  const { node, connection, "eviction/budgets": budgets } = live;
  const lines: Line[] = [];
  if (connection.state === "lost")
    lines.push({
      tone: "bad",
      text: `The agent has been silent since ${timeOf(connection.at)}; what follows is from then`,
    });
  const checks = node?.health.checks ?? [];
  const failing = checks.filter(({ ok }) => !ok);
  if (failing.length > 0)
    lines.push({ tone: "bad", text: `${namesText(failing, "health check")} ${verb(failing, "fail")}` });
  if (node && node.plugins.failing > 0)
    lines.push({
      tone: "bad",
      text: `${counted(node.plugins.failing, "plugin")} ${node.plugins.failing === 1 ? "is" : "are"} not working`,
    });
  if (node?.objects.problem)
    lines.push({ tone: "bad", text: `Something can't be published: ${node.objects.problem}` });
  for (const threshold of budgets?.thresholds ?? []) {
    const { plugin, scope, metType, since } = threshold;
    lines.push({
      tone: metType === "hard" ? "bad" : "warn",
      text: `Pressure (${metType}) for ${age(now - since)}: ${thresholdText(scope, threshold)}, by ${plugin}`,
    });
  }
  const late = (budgets?.pending ?? []).filter(({ deadline }) => deadline !== null && deadline < now);
  if (late.length > 0)
    lines.push({ tone: "bad", text: `${counted(late.length, "evicted pod")} not deleted in time` });
  const warned = checks.filter(({ ok, warning }) => ok && warning !== undefined);
  if (warned.length > 0)
    lines.push({ tone: "warn", text: `${namesText(warned, "health check")} ${verb(warned, "warn")}` });
  if (node && node.plugins.refusing > 0)
    lines.push({ tone: "warn", text: `Content of ${counted(node.plugins.refusing, "plugin")} refused` });
  if (lines.length > 0 || !node || (node.eviction && !budgets)) return lines;
  const pressure = node.eviction && budgets?.at != null ? ", and no threshold is met" : "";
  return [{ tone: "ok", text: `Nothing: all checks pass${pressure}` }];
}

/** What was done in the last hour, and what is set on the node. */
export function doneLines({ live, evictions, now }: Facts): Line[] {
  if (live.node?.eviction === null) return [{ tone: "quiet", text: "Nothing: eviction is off" }];
  if (!evictions) return [];
  const lines: Line[] = [];
  const items = ofLastHour(evictions.items, now);
  const real = items.filter(({ dryRun }) => !dryRun);
  const inProgress = real.filter(isInProgress).length;
  const ended = real.filter(({ outcome }) => outcome?.result === "terminated").length;
  const failed = real.filter(({ outcome }) => outcome?.result === "failed").length;
  if (inProgress > 0) lines.push({ tone: "warn", text: `${counted(inProgress, "eviction")} in progress` });
  if (ended > 0) lines.push({ tone: "ok", text: `${counted(ended, "pod")} evicted in the last hour` });
  if (failed > 0) lines.push({ tone: "bad", text: `${counted(failed, "eviction")} failed in the last hour` });
  const dry = new Set(items.filter(({ dryRun }) => dryRun).map(({ uid }) => uid)).size;
  if (dry > 0)
    lines.push({
      tone: "quiet",
      text: `${counted(dry, "pod")} would have been evicted in the last hour (dry run)`,
    });
  if (evictions.isCut)
    lines.push({ tone: "quiet", text: "There were more evictions in the last hour than are counted here" });
  const last = real.findLast(({ outcome }) => outcome !== null);
  if (last?.outcome)
    lines.push({
      tone: "quiet",
      text: `The last, ${age(now - last.outcome.at)} ago: ${last.namespace}/${last.name}, ${outcomeText(last.outcome)}`,
    });
  for (const { name, since } of live["eviction/node"]?.conditions ?? [])
    lines.push({ tone: "warn", text: `Condition ${name} set at ${timeOf(since)}` });
  const [missing] = missingLines(evictions.coverage, now - HOUR_MS);
  if (lines.length > 0) return missing ? [...lines, { tone: "quiet", text: missing.slice(0, -1) }] : lines;
  const text = missing ? `Nothing is recorded for the last hour. ${missing}` : "Nothing in the last hour.";
  return [{ tone: "quiet", text: text.slice(0, -1) }];
}

/** What comes next, or what it waits for. */
export function nextLines({ live }: Facts): Line[] {
  const budgets = live["eviction/budgets"];
  if (live.node?.eviction === null) return [{ tone: "quiet", text: "Nothing, while eviction is off" }];
  if (!budgets) return [];
  const dryRunPlugins = live.node?.eviction?.dryRunPlugins ?? [];
  const lines = [
    ...budgets.thresholds.map((threshold) => thresholdLine(threshold, { dryRunPlugins }, budgets.at ?? 0)),
    ...budgets.pending.map(({ namespace, name, deadline }): Line => {
      const end = deadline === null ? "waits for the API server" : `must end by ${timeOf(deadline)}`;
      return { tone: "warn", text: `The eviction of ${namespace}/${name} ${end}` };
    }),
    ...limitLines(budgets.limited),
    ...budgets.paused.map(
      ({ namespace, name, until }): Line => ({
        tone: "warn",
        text: `${namespace}/${name} may be tried again from ${timeOf(until)}`,
      }),
    ),
  ];
  if (budgets.queued.length > 0)
    lines.push({ tone: "warn", text: `${counted(budgets.queued.length, "pod")} queued for the next rounds` });
  for (const { name, isMet, until } of live["eviction/node"]?.conditions ?? [])
    if (!isMet && until !== null)
      lines.push({
        tone: "quiet",
        text: `Condition ${name} is removed at ${timeOf(until)} unless it is reported again`,
      });
  if (lines.length > 0) return lines;
  const text =
    budgets.at === null
      ? "The first round: none has run since the agent's start"
      : "Nothing is planned: each round asks the plugins again";
  return [{ tone: "quiet", text }];
}

function thresholdLine(
  threshold: Budgets["thresholds"][number],
  policy: { dryRunPlugins: readonly string[] },
  at: number,
): Line {
  const { plugin, confirmed, since, gracePeriodSeconds } = threshold;
  if (isDryRun(policy, plugin)) return { tone: "quiet", text: `${plugin} is in dry run: only recorded` };
  if (!confirmed)
    return {
      tone: "warn",
      text: `The threshold of ${plugin} counts from ${timeOf(since + gracePeriodSeconds * 1_000)}, after its grace period`,
    };
  const why = whyNoPodText(threshold, at);
  if (why === undefined) return { tone: "warn", text: `Pods are selected for ${plugin}` };
  return { tone: threshold.unserved ? "bad" : "warn", text: `No pod is selected for ${plugin}: ${why}` };
}

function limitLines(limited: Budgets["limited"]): Line[] {
  return [...Map.groupBy(limited, ({ reason }) => reason)].map(([reason, pods]) => {
    const ends = pods.flatMap(({ until }) => until ?? []);
    const until = ends.length > 0 ? ` until ${timeOf(Math.min(...ends))}` : "";
    return { tone: "warn", text: `${counted(pods.length, "pod")} on hold: ${refusalWord(reason)}${until}` };
  });
}

function namesText(checks: readonly { name: string }[], what: string): string {
  return `${counted(checks.length, what)} (${checks.map(({ name }) => name).join(", ")})`;
}

function verb(subjects: readonly unknown[], word: string): string {
  return subjects.length === 1 ? `${word}s` : word;
}
