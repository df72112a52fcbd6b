import type { Mutation } from "./mutation.ts";

const tainted =
  "A taint is on the Node while its condition is reported, and is removed when it no longer is.";
const shielded = "No critical, static, mirror or DaemonSet pod is evicted.";
const limited = "No more pods are evicted in a window than the limits allow, over all restarts and reloads.";
const dry = "No pod is evicted at the request of plugins in dry run.";
const relieved = "While a hard threshold stays met and a pod may be evicted, one is evicted within a minute.";
const named =
  "No pod is evicted that no plugin has named in this round, of those that it was offered, that no policy selects, and for which no in-tree plugin has a reading over its threshold.";
const onePod = "A hard threshold costs one pod for each answer, however many the plugin names.";
const lasting =
  "A condition stays until its plugin has not reported it for the transition period, also while calls fail, and plugins in dry run set none.";
const grace = "The grace period of an eviction is the pod's own, or one that eviction.grace allows.";
const validTaints = "Every taint of the agent has a valid name and an effect that its settings allow.";
const explained = "A request for a pod that nobody may evict is refused, and explained with the pod.";
const timely =
  "A condition's taint is on the Node one round after it is reported, stays for its transition period, and is gone one round later.";
const cooled =
  "No further pod is evicted for a plugin's threshold until the eviction of its last victim has ended and the cooldown has passed.";
const inBurst = "No more pods are selected in a round than the burst of its settings allows.";
const decide = "packages/api/src/decide";

/** Defects of the decision of a round: its asks, candidates, conditions, limits and thresholds. */
export const decisionMutations: readonly Mutation[] = [
  {
    name: "a limit allows one eviction too many",
    file: `${decide}/limits.ts`,
    from: "times.length < limit) return null;",
    to: "times.length <= limit) return null;",
    promise: limited,
    seed: 1,
  },
  {
    name: "limits are counted by the wall clock",
    file: `${decide}/state.ts`,
    from: "return Math.abs(by) < SHORTEST_STEP_MS ? { ...state, at: now } : moved(state, by, now);",
    to: "return by > Number.MAX_VALUE ? moved(state, by, now) : { ...state, at: now };",
    promise: limited,
    seed: 20,
  },
  {
    name: "mirror pods are offered",
    file: `${decide}/candidates.ts`,
    from: 'if (pod.isMirror) return because("mirror");',
    to: "",
    promise: shielded,
    seed: 1,
  },
  {
    name: "static pods are offered",
    file: `${decide}/candidates.ts`,
    from: 'if (pod.isStatic) return because("static");',
    to: "",
    promise: shielded,
    seed: 2,
  },
  {
    name: "critical pods are offered",
    file: `${decide}/candidates.ts`,
    from: "if (pod.priority >= SYSTEM_CRITICAL_PRIORITY) return",
    to: 'if (pod.priorityClassName !== "") return null;\n  if (pod.priority >= SYSTEM_CRITICAL_PRIORITY) return',
    promise: shielded,
    seed: 7,
  },
  {
    name: "dry run evicts",
    file: `${decide}/decide.ts`,
    from: "if (policy.dryRunPlugins.length === 0) return requested;",
    to: "if (policy.dryRunPlugins) return requested;",
    promise: dry,
    seed: 3,
  },
  {
    name: "a condition of a plugin that fails stays for ever",
    file: `${decide}/conditions.ts`,
    from: "if (now - condition.lastSeen >= policy.conditionTransitionPeriodMs) continue;",
    to: "",
    promise: tainted,
    seed: 22,
  },
  {
    name: "pods of DaemonSets are offered",
    file: `${decide}/candidates.ts`,
    from: 'if (pod.owner?.kind === "DaemonSet" && !rules.evictDaemonSetPods)',
    to: 'if (pod.owner?.kind === "Pod")',
    promise: shielded,
    seed: 7,
  },
  {
    name: "the grace period of a threshold starts again in each round",
    file: `${decide}/thresholds.ts`,
    from: "const since = own && isSamePressure(own, answer, now) ? own.since : now;",
    to: "const since = now;",
    promise: relieved,
    seed: 1,
  },
  {
    name: "a threshold counts before its grace period has ended",
    file: `${decide}/thresholds.ts`,
    from: "const confirmed = now - since >= answer.gracePeriodSeconds * 1000;",
    to: "const confirmed = true;",
    promise: "No pod is evicted for a threshold before the threshold was met for its grace period.",
    seed: 15,
  },
  {
    name: "a plugin in dry run sets conditions",
    file: `${decide}/conditions.ts`,
    from: "    if (isDryRun(policy, answers.plugin)) continue;\n",
    to: "",
    promise: lasting,
    seed: 19,
  },
  {
    name: "a condition ends with its first round without a report",
    file: `${decide}/conditions.ts`,
    from: "now - condition.lastSeen >= policy.conditionTransitionPeriodMs",
    to: "now > condition.lastSeen",
    promise: lasting,
    seed: 10,
  },
  {
    name: "a condition stays for three times its transition period",
    file: `${decide}/conditions.ts`,
    from: "if (now - condition.lastSeen >= policy.conditionTransitionPeriodMs) continue;",
    to: "if (now - condition.lastSeen >= 3 * policy.conditionTransitionPeriodMs) continue;",
    promise: timely,
    seed: 24,
  },
  {
    name: "a pod is found by its name, whatever UID the plugin names",
    file: `${decide}/asks.ts`,
    from: "const found = this.#candidates.get(named.uid) ??",
    to: "const found = [...this.#candidates.values()].find((pod) => pod.name === named.name) ??",
    promise: named,
    seed: 157,
  },
  {
    name: "a pod is evicted that was named under another namespace",
    file: `${decide}/asks.ts`,
    from: "if (differs(named.name, found.name) || differs(named.namespace, found.namespace)) {",
    to: "if (differs(named.name, found.name)) {",
    promise: named,
    seed: 203,
  },
  {
    name: "a hard threshold evicts all pods that the plugin names",
    file: `${decide}/asks.ts`,
    from: "return { pods: pods.slice(0, 1), named };",
    to: "return { pods, named };",
    promise: onePod,
    seed: 94,
  },
  {
    name: "a refused request is not recorded",
    file: `${decide}/asks.ts`,
    from: "this.#refusals.add(plugin, found, found.reason, found.detail);",
    to: "",
    promise: explained,
    seed: 157,
  },
  {
    name: "a requested grace period has no maximum",
    file: `${decide}/grace.ts`,
    from: "if (requested > rules.longestSeconds) {",
    to: "if (requested > Number.MAX_VALUE) {",
    promise: grace,
    seed: 116,
  },
  {
    name: "every effect of a condition becomes a taint",
    file: `${decide}/taints.ts`,
    from: 'else if (!taintEffects.includes(effect)) refuse("effectNotAllowed", "is not in eviction.taintEffects");',
    to: "",
    promise: validTaints,
    seed: 116,
  },
  {
    name: "a threshold has no cooldown",
    file: `${decide}/pressure.ts`,
    from: "if (last === undefined || this.#now - last >= this.#cooldownMs) return null;",
    to: "if (last === undefined || this.#now >= last) return null;",
    promise: cooled,
    seed: 1,
  },
  {
    name: "forced pods are evicted beyond the burst",
    file: `${decide}/choose.ts`,
    from: "const count = burst < 0 ? accepted.length : burst;",
    to: "const count = accepted.length + burst;",
    promise: inBurst,
    seed: 108,
  },
  {
    name: "a policy evicts pods that its filter excludes",
    file: "packages/agent/src/policy/rank-pods.ts",
    from: 'if (!taken.value) return { pod, kind: "filtered", why: "excluded by the filter" };',
    to: "",
    promise: named,
    seed: 52,
  },
];
