import {
  type ContainerExit,
  type EvictionStep,
  MOST_EXITS,
  type NodePod,
  type PodEnding,
  type PodExplanation,
} from "../records/index.ts";
import { type Attribution, attributionOf, lastEvictionOf } from "./attribution.ts";
import { counted, offsetOf } from "./text.ts";
import { SECOND_MS, timeOf } from "./time.ts";

const EVICTION_API = "EvictionByEvictionAPI";
// Reasons of the condition DisruptionTarget:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
const disruptors: ReadonlyMap<string, string> = new Map([
  ["PreemptionByScheduler", "Preempted by the scheduler"],
  // Kubernetes 1.25 and 1.26.
  ["PreemptionByKubeScheduler", "Preempted by the scheduler"],
  [EVICTION_API, "Evicted through the Eviction API"],
  ["DeletionByTaintManager", "Deleted by the taint manager"],
  ["DeletionByPodGC", "Deleted by the pod garbage collector"],
]);
// `status.reason` set by the kubelet: pkg/kubelet/eviction, preemption, nodeshutdown, kubelet.go.
const kubeletReasons: ReadonlyMap<string, string> = new Map([
  ["Evicted", "Evicted by the kubelet"],
  ["Preempting", "Preempted by the kubelet for a critical pod"],
  ["Terminated", "Terminated by the kubelet at node shutdown"],
  ["NodeShutdown", "Terminated by the kubelet at node shutdown"],
  ["Shutdown", "Terminated by the kubelet at node shutdown"],
  ["DeadlineExceeded", "Terminated by the kubelet after its active deadline"],
  ["NodeLost", "Marked as NodeLost by the node controller"],
]);
const OOM_KILLED = "OOMKilled";
const MOST_CONTAINERS = 5;

/**
 * Returns the cause of a pod's end from its conditions and status: "Preempted by the scheduler: ...". Undefined if they
 * give no reason.
 * @param by who terminated it; if Nodekeeper, the condition of the Eviction API is its own and not a cause
 */
export function causeOf(
  { disruption, reason, message, phase }: PodEnding,
  by: Attribution["by"],
): string | undefined {
  const kubelet = kubeletReasons.get(reason);
  if (by === "nodekeeper" && disruption?.reason === EVICTION_API) return undefined;
  if (disruption !== null && disruption.reason !== "TerminationByKubelet") {
    const whose = disruption.reason === EVICTION_API && by === "other" ? " by another client" : "";
    const who = disruptors.get(disruption.reason) ?? `Disrupted (${disruption.reason})`;
    return withMessage(`${who}${whose}`, disruption.message);
  }
  if (kubelet !== undefined) return withMessage(kubelet, message);
  if (disruption !== null) return withMessage("Terminated by the kubelet", disruption.message || message);
  if (reason !== "") return withMessage(`${phase || "Ended"} (${reason})`, message);
  return undefined;
}

/** Describes when and why a pod was deleted, and how its containers exited. Empty for a running pod. */
export function endingText(history: NodePod, attribution: Attribution): string {
  const { leftAt, ending } = history;
  const cause = causeOf(ending, attribution.by);
  return [
    leftAt === null ? stillThere(ending) : departure(history, leftAt, attribution),
    cause === undefined ? "" : `${cause}.`,
    ...exitTexts(history),
  ]
    .filter((text) => text !== "")
    .join(" ");
}

/** Describes how the containers exited at a pod's end: "Container main exited with code 143." */
export function exitTexts({ ending, exits, leftAt }: NodePod): string[] {
  const hasEnded = leftAt !== null || ending.phase === "Failed" || ending.phase === "Succeeded";
  const from = (ending.deletion?.requestedAt ?? 0) - SECOND_MS;
  const last = new Map(exits.map((exit) => [exit.name, exit]));
  const texts: string[] = [];
  for (const exit of last.values()) {
    const kills = exits.filter(({ name, reason }) => name === exit.name && reason === OOM_KILLED);
    const isItsEnd = hasEnded && (exit.at ?? 0) >= from;
    if (isItsEnd) texts.push(exitText(exit));
    if (kills.length > (isItsEnd && exit.reason === OOM_KILLED ? 1 : 0))
      texts.push(killsText(kills, exits.length < MOST_EXITS));
  }
  const shown = texts.slice(0, MOST_CONTAINERS);
  return texts.length > shown.length
    ? [...shown, `${counted(texts.length - shown.length, "more container")}.`]
    : shown;
}

/** A line of "What happened". */
export interface TimelineLine extends EvictionStep {
  /** Time since the round that first selected the pod, or since the first line: "+2.0 s". */
  offset: string;
}

/** Returns the timeline of a pod, oldest first: steps of the agent, and reports of the API server and the runtime. */
export function timelineOf(explanation: PodExplanation): TimelineLine[] {
  const all = stepsOf(explanation);
  const from = explanation.rounds.find(({ victim }) => victim !== null)?.at ?? all[0]?.at ?? 0;
  return all.map((step) => ({ ...step, offset: offsetOf(step.at - from) }));
}

function stepsOf(explanation: PodExplanation): EvictionStep[] {
  const { history, events, steps } = explanation;
  const all = [...steps, ...events];
  // The last step of an eviction already reports the deletion, unless containers were stopped.
  const { outcome } = lastEvictionOf(explanation);
  const isStop = outcome?.result === "terminated" && outcome.stopsContainers;
  const hasLastStep = !isStop && steps.some(({ message }) => message === outcome?.message);
  if (history) {
    const { uid, ending, exits, leftAt, lastKnownAt } = history;
    const add = (at: number | null, message: string) => {
      if (at !== null) all.push({ uid, at, message });
    };
    const { deletion, disruption } = ending;
    const cause = causeOf(ending, attributionOf(explanation).by);
    const by = disruption?.manager === undefined ? "" : `; condition set by ${disruption.manager}`;
    if (cause !== undefined) add(disruption?.at ?? null, `${cause}${by}`);
    const grace = deletion?.gracePeriodSeconds;
    const within = grace === null || grace === undefined ? "" : `, grace period ${grace} s`;
    if (deletion) add(deletion.requestedAt, `deletion requested${within}`);
    for (const exit of exits) add(exit.at, lowered(exitText(exit)));
    if (leftAt !== null && !hasLastStep) {
      add(leftAt, lastKnownAt === null ? "pod deleted" : "pod found deleted");
    }
  }
  return all.sort((a, b) => a.at - b.at);
}

function stillThere({ deletion, phase }: PodEnding): string {
  if (deletion !== null) return `Terminating: its deletion was requested at ${timeOf(deletion.requestedAt)}.`;
  if (phase === "Succeeded") return "Completed.";
  return "";
}

function departure({ lastKnownAt }: NodePod, leftAt: number, { by, why }: Attribution): string {
  const who =
    by === "other"
      ? "not by Nodekeeper"
      : by === "unknown" && why !== ""
        ? `whether by Nodekeeper is not known: ${why}`
        : "";
  const when =
    lastKnownAt === null ? `at ${timeOf(leftAt)}` : `between ${timeOf(lastKnownAt)} and ${timeOf(leftAt)}`;
  return `Pod deleted ${when}${who && `${by === "other" ? "," : ";"} ${who}`}.`;
}

function exitText({ name, exitCode, reason, memoryLimit }: ContainerExit): string {
  const code = exitCode === null ? "" : ` with code ${exitCode}`;
  if (reason === OOM_KILLED) {
    const details = [
      ...(exitCode === null ? [] : [`exit code ${exitCode}`]),
      ...(memoryLimit === undefined ? [] : [`memory limit ${memoryLimit}`]),
    ];
    return `Container ${name} was OOM-killed${details.length > 0 ? ` (${details.join(", ")})` : ""}.`;
  }
  // These reasons add nothing to the exit code.
  const isPlain = reason === "" || reason === "Completed" || reason === "Error";
  return `Container ${name} exited${code}${isPlain ? "" : ` (${reason})`}.`;
}

// "Container main was OOM-killed at 2026-11-21T20:28:50Z.", or "... 3 times, last at ...", or "at least 3 times" if
// earlier exits are no longer kept.
function killsText(kills: readonly ContainerExit[], isComplete: boolean): string {
  const { name, at } = kills.at(-1)!;
  const when = at === null ? "" : ` at ${timeOf(at)}`;
  const times = isComplete ? counted(kills.length, "time") : `at least ${counted(kills.length, "time")}`;
  const often = kills.length > 1 || !isComplete ? ` ${times}${when && `, last${when}`}` : when;
  return `Container ${name} was OOM-killed${often}.`;
}

function lowered(sentence: string): string {
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1).replace(/\.$/, "")}`;
}

function withMessage(who: string, message: string): string {
  return message.trim() === "" ? who : `${who}: ${message.replace(/[.\s]+$/, "")}`;
}
