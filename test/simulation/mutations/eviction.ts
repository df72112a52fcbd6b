import type { Mutation } from "./mutation.ts";

const tainted =
  "A taint is on the Node while its condition is reported, and is removed when it no longer is.";
const healthy = "If all is well, no health check fails.";
const limited = "No more pods are evicted in a window than the limits allow, over all restarts and reloads.";
const foreign = "Labels, annotations, capacity and taints of other owners stay as they wrote them.";
const byUid =
  "A request to evict a pod names its UID and version, so that no other pod of this name is evicted, and none that another client has deleted.";
const trueEvents =
  "An Event says that a pod was evicted only if the API server has accepted its eviction, or its containers were stopped.";
const relieved = "While a hard threshold stays met and a pod may be evicted, one is evicted within a minute.";
const truth = "What is stated about a pod is true; that it is not known is stated only if evidence was lost.";
const ownOutcome = "An outcome that is shown beside a selection is that of an eviction for its plugin.";
const answered = "What a round records as the answer of a plugin is what the plugin answered in this round.";
const noticed =
  "While what changed can't be written, the health check that is about it fails, and not when it is written.";
const idle =
  "An agent with nothing to do sends no writes, works once in each period, and keeps no work in queues.";
const current =
  "What an instance answered does not count in a round that is decided after another one registered.";
const timely =
  "A condition's taint is on the Node one round after it is reported, stays for its transition period, and is gone one round later.";
const bounded = "What the agent keeps is bounded by what the node has, and its requests by what changes.";
const sameContainers =
  "An eviction stops no container that was started after it had stopped the first one, and no other agent continues it.";
const stopGrace = "The grace period of a StopContainer is the pod's own, or one that eviction.grace allows.";
const knownPods = "At rest the agent knows the pods of its node as the API server has them.";
const eviction = "packages/agent/src/eviction";

/** Defects of how plugins are asked, and of how a decision is carried out and recorded. */
export const evictionMutations: readonly Mutation[] = [
  {
    name: "the state is not saved before an eviction is sent",
    file: `${eviction}/ledger.ts`,
    from: "this.#state = this.withProgress(before);\n    const { log, records } = this.#options;",
    to: "this.#state = this.withProgress(before);\n    if (progress.stage) return true;\n    const { log, records } = this.#options;",
    promise: truth,
    seed: 8,
  },
  {
    name: "limits are forgotten at a restart",
    file: `${eviction}/ledger.ts`,
    from: "boot: boot ?? null, unrecorded: [] };",
    to: "boot: boot ?? null, unrecorded: [], recent: [] };",
    promise: limited,
    seed: 14,
  },
  {
    name: "a call to a plugin has no deadline",
    file: `${eviction}/ask/plugin-caller.ts`,
    from: "await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);",
    to: "await work(scope.signal);",
    promise: relieved,
    seed: 198,
  },
  {
    name: "the answer of an earlier round is used if a call fails",
    file: `${eviction}/ask/plugin-caller.ts`,
    from: "await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);",
    to: `await withDeadline(clock, { ms: deadlineMs }, scope.signal, work).then(
        (given) => ((plugin.given ??= {})[method] = given),
        (error) => { if (plugin.given?.[method]) return plugin.given[method]; throw error; });`,
    promise: answered,
    seed: 18,
  },
  {
    name: "a taint is never removed",
    file: `${eviction}/act/node-taints.ts`,
    from: "live.filter((taint) => !isComplete || !isOwn(taint) || desiredIds.has(idOf(taint)));",
    to: "live;",
    promise: tainted,
    seed: 10,
  },
  {
    name: "a taint is never set",
    file: `${eviction}/act/node-taints.ts`,
    from: "desired.filter((taint) => !liveIds.has(idOf(taint)));",
    to: "[];",
    promise: tainted,
    seed: 1,
  },
  {
    name: "taints are not removed after a restart",
    file: `${eviction}/act/taint-gate.ts`,
    from: "this.#isOpen = isWhole || this.#clock.monotonic() - this.#startedAt >= STARTUP_GRACE_MS;",
    to: "",
    promise: tainted,
    seed: 10,
  },
  {
    name: "a failed write of taints counts as done",
    file: `${eviction}/act/node-tainter.ts`,
    from: 'metrics.taintWrites.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });\n      throw error;',
    to: 'metrics.taintWrites.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });\n      this.#reconciled(this.#live, this.#desired);',
    promise: noticed,
    seed: 48,
  },
  {
    name: "a taint of another owner is removed",
    file: `${eviction}/act/node-taints.ts`,
    from: "!isComplete || !isOwn(taint) || desiredIds",
    to: "!isComplete || desiredIds",
    promise: foreign,
    seed: 4,
  },
  {
    name: "a removed taint is marked as an added one, too",
    file: `${eviction}/act/taint-reports.ts`,
    from: "for (const taint of added) this.#added(taint);",
    to: "for (const taint of [...added, ...removed]) this.#added(taint);",
    promise: "Marks and Events about taints are about what the agent wrote, and name no other client.",
    seed: 10,
  },
  {
    name: "taints are written without the version that was read",
    file: `${eviction}/act/node-taints.ts`,
    from: "{ metadata: { resourceVersion, uid, ...",
    to: "{ metadata: { uid, ...",
    promise: foreign,
    seed: 15,
  },
  {
    name: "an eviction is sent without the UID of the pod",
    file: `${eviction}/act/api-killers.ts`,
    from: "preconditions: { uid, ...(res",
    to: "preconditions: { ...(res",
    promise: byUid,
    seed: 4,
  },
  {
    name: "an eviction is sent without the version that was read",
    file: `${eviction}/act/eviction-sender.ts`,
    from: "        resourceVersion,\n",
    to: "",
    promise: byUid,
    seed: 4,
  },
  {
    name: "an eviction of unknown outcome counts as accepted",
    file: `${eviction}/act/api-killers.ts`,
    from: "return resultOfError(error, pod, rights);",
    to: 'return { kind: "accepted", message: "" };',
    promise: trueEvents,
    seed: 1,
  },
  {
    name: "an eviction is not tried again",
    file: `${eviction}/act/evictor.ts`,
    from: "this.#queue.addAfter(task.pod.uid, delay);",
    to: "",
    promise: relieved,
    seed: 124,
  },
  {
    name: "taints count as late although they are as desired",
    file: `${eviction}/act/node-tainter.ts`,
    from: "this.#writes.reconciled(signatureOf(desired));\n    this.#lateSince = undefined;",
    to: "this.#writes.reconciled(signatureOf(desired));",
    promise: healthy,
    seed: 3,
  },
  {
    name: "a late answer of a plugin is counted in a later round",
    file: `${eviction}/ask/plugin-caller.ts`,
    from: "await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);",
    to: `await withDeadline(clock, { ms: deadlineMs }, scope.signal, () =>
        ((plugin.open ??= {})[method] ??= work(signal).finally(() => { delete plugin.open[method]; })));`,
    promise: relieved,
    seed: 207,
  },
  {
    name: "an acceptance is not recorded",
    file: `${eviction}/act/eviction-tasks.ts`,
    from: "ledger.progress({ uid: task.pod.uid, stage, at, deadline, ...stopsOf(task) });",
    to: 'if (stage !== "accepted") ledger.progress({ uid: task.pod.uid, stage, at, deadline, ...stopsOf(task) });',
    promise: truth,
    seed: 4,
  },
  {
    name: "an eviction of unknown outcome is explained as none",
    file: "packages/api/src/wording/verdict.ts",
    from: '    case "superseded":\n',
    to: '    case "superseded":\n    case "unknown":\n',
    promise: truth,
    seed: 25,
  },
  {
    name: "the list of evictions shows an outcome beside another pod",
    file: `${eviction}/records/recorded-evictions.ts`,
    from: "const eviction = this.#open.get(outcome.uid);",
    to: "const [eviction] = this.#open.values();",
    promise: ownOutcome,
    seed: 55,
  },
  {
    name: "taints are written although nothing has changed",
    file: `${eviction}/act/node-taints.ts`,
    from: "if (isSame && isListed) return undefined;",
    to: "",
    promise: healthy,
    seed: 1,
  },
  {
    name: "a round begins in the middle of its period",
    file: `${eviction}/manager.ts`,
    from: "pacing.next(startedAt + periodMs, signal)",
    to: "pacing.next(startedAt + periodMs / 2, signal)",
    promise: idle,
    seed: 28,
  },
  {
    name: "an answer of an instance that was replaced is used",
    file: `${eviction}/ask/plugin-round.ts`,
    from: 'if (!plugin?.scope.signal.aborted || "failure" in answered) return answered;',
    to: "if (plugin || answered) return answered;",
    promise: current,
    seed: 54,
  },
  {
    name: "bounds: metrics of a plugin that was removed are kept",
    file: `${eviction}/metrics.ts`,
    from: "metrics.callDuration.remove({ plugin });",
    to: "",
    promise: bounded,
    seed: 176,
  },
  {
    name: "quiet: readings are sampled fifty times as often",
    file: `${eviction}/ask/threshold-sampler.ts`,
    from: "clock.after(Math.min(pauseMs, LONGEST_PERIOD_MS), take)",
    to: "clock.after(Math.min(pauseMs, LONGEST_PERIOD_MS) / 50, take)",
    promise: idle,
    seed: 28,
  },
  {
    name: "quiet: taints are written 20 seconds late",
    file: `${eviction}/act/node-tainter.ts`,
    from: "this.#writes.schedule(signatureOf(desired));",
    to: "this.#options.context.clock.after(20_000, () => this.#writes.schedule(signatureOf(desired)));",
    promise: timely,
    seed: 24,
  },
  {
    name: "requests: the Node is read in each round",
    file: `${eviction}/act/node-tainter.ts`,
    from: "    this.#reports.desired(desired);\n    this.#compare();",
    to: "    this.#reports.desired(desired);\n    void this.#read(new AbortController().signal).catch(() => {});\n    this.#compare();",
    promise: bounded,
    seed: 320,
  },
  {
    name: "stops: a later attempt stops containers that were started after the first",
    file: `${eviction}/act/container-killer.ts`,
    from: "(chosen?.has(id) ?? true)",
    to: "(chosen?.has(id) || true)",
    promise: sameContainers,
    seed: 38,
  },
  {
    name: "stops: containers count as stopped without a fresh reading",
    file: `${eviction}/act/container-killer.ts`,
    from: "      if (running.length === 0) return",
    to: "      if (running.length >= 0) return",
    promise: trueEvents,
    seed: 160,
  },
  {
    name: "stops: a pod counts as evicted once StopContainer is sent",
    file: `${eviction}/act/eviction-sender.ts`,
    from: 'if (!result.ended) task.requests = "accepted";',
    to: 'task.requests = "accepted";',
    promise: trueEvents,
    seed: 6,
  },
  {
    name: "stops: after a restart the agent takes stopped containers for a deleted pod",
    file: `${eviction}/act/eviction-tasks.ts`,
    from: "return stopsContainers ? { stopsContainers } : {};",
    to: "return stopsContainers ? {} : {};",
    promise: truth,
    seed: 76,
  },
  {
    name: "stops: a pod of which no container runs is forgotten",
    file: `${eviction}/act/eviction-sender.ts`,
    from: '      case "exited":\n',
    to: '      case "exited":\n        task.isGone = true;\n',
    promise: knownPods,
    seed: 114,
  },
  {
    name: "stops: StopContainer is not recorded before it is sent",
    file: `${eviction}/act/eviction-sender.ts`,
    from: "task.withdrawn !== undefined || !onSending()",
    to: 'task.withdrawn !== undefined || (name !== "containerStop" && !onSending())',
    promise: truth,
    seed: 106,
  },
  {
    name: "stops: StopContainer is recorded as sent while the containers are read",
    file: `${eviction}/act/container-killer.ts`,
    from: "    let containers: ContainerStatus[];\n    try {",
    to: '    let containers: ContainerStatus[];\n    if (!request.sending()) return { kind: "unsent" };\n    try {',
    promise: truth,
    seed: 1395,
  },
  {
    name: "history: a pod counts as there until the history was last written",
    file: `${eviction}/records/pod-history.ts`,
    from: "watchedAt: this.#watchedBefore ?? this.#heardAt,",
    to: "watchedAt: this.#watchedBefore ?? this.#options.clock.now(),",
    promise: truth,
    seed: 2048,
  },
  {
    name: "history: what a list has counts as heard before what it lacks",
    file: `${eviction}/records/pod-history.ts`,
    from: "    const now = clock.now();\n    const { labels",
    to: "    const now = clock.now();\n    this.heard();\n    const { labels",
    promise: truth,
    seed: 5,
  },
  {
    name: "no records are missing if the power was lost before the first one",
    file: "packages/agent/src/state/record-coverage.ts",
    from: "if (mayHaveLostCommits && !this.#isNew) {",
    to: "if (mayHaveLostCommits && savedAt !== undefined) {",
    promise: truth,
    seed: 1182,
  },
  {
    name: "stops: the pod's own grace period is not used",
    file: `${eviction}/act/container-killer.ts`,
    from: "    const seconds = graceOf(request);",
    to: "    const seconds = request.gracePeriodSeconds ?? 0;",
    promise: stopGrace,
    seed: 6,
  },
  {
    name: "stops: what others do to the pod later is not stated",
    file: `${eviction}/act/eviction-journal.ts`,
    from: "...(stopsContainers ? { stopsContainers } : {}),",
    to: "",
    promise: truth,
    seed: 26,
  },
];
