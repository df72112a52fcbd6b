import { bindingMutations } from "./binding-mutations.ts";
import type { Mutation } from "./mutation.ts";
import { poolMutations } from "./pool-mutations.ts";

const published = "After quiet, what plugins last reported is what is published, and nothing else.";
const tainted =
  "A taint is on the Node while its condition is reported, and is removed when it no longer is.";
const healthy = "If all is well, no health check fails.";
const shielded = "No critical, static, mirror or DaemonSet pod is evicted.";
const limited = "No more pods are evicted in a window than the limits allow, over all restarts and reloads.";
const dry = "No pod is evicted at the request of plugins in dry run.";

const foreign = "Labels, annotations and taints of other owners stay as they wrote them.";
const kept =
  "What is published of a reporter is what it reported, never goes back to an earlier report, and stays while the reporter is away, for the grace period at least.";
const byUid =
  "A request to evict a pod names its UID and version, so that no other pod of this name is evicted, and none that another client has deleted.";
const trueEvents =
  "An Event says that a pod was evicted only if the API server has accepted its eviction, or its containers were stopped.";
const relieved = "While a hard threshold stays met and a pod may be evicted, one is evicted within a minute.";
const deaf = "While the API server ends each watch at once, a health check fails.";
const allocatable = "The scheduler can allocate exactly the healthy devices that drivers last sent.";
const toldPrepared =
  "The kubelet is told that a claim is prepared only once its driver has prepared it, with its CDI file.";
const cdiFiles = "CDI files are those of the prepared claims.";
const claims = "Each allocated claim that a pod uses is prepared, and each other is unprepared.";
const unused = "A claim is unprepared once all containers of its pod have exited.";
const truth = "What is stated about a pod is true; that it is not known is stated only if evidence was lost.";
const ownOutcome = "An outcome that is shown beside a selection is that of an eviction for its plugin.";
const answered = "What a round records as the answer of a plugin is what the plugin answered in this round.";
const noLeftovers = "No ResourceSlice is left behind: each has the newest generation of its pool.";
const exclusive = "No device is prepared for two claims at one time.";
const whole = "No pool is incomplete for longer than its writes take.";
const noticed =
  "While what changed can't be written, the health check that is about it fails, and not when it is written.";
const idle =
  "An agent with nothing to do sends no writes, works once in each period, and keeps no work in queues.";
const named =
  "No pod is evicted that no plugin has named in this round, of those that it was offered, that no policy selects, and for which no in-tree plugin has a reading over its threshold.";
const onePod = "A hard threshold costs one pod for each answer, however many the plugin names.";
const lasting =
  "A condition stays until its plugin has not reported it for the transition period, also while calls fail, and plugins in dry run set none.";
const grace = "The grace period of an eviction is the pod's own, or one that eviction.grace allows.";
const validTaints = "Every taint of the agent has a valid name and an effect that its settings allow.";
const explained = "A request for a pod that nobody may evict is refused, and explained with the pod.";
const current =
  "What an instance answered does not count in a round that is decided after another one registered.";
const toldOnce = "A consumer is told each transition of a container once, in order, and without gaps.";

const timely =
  "A condition's taint is on the Node one round after it is reported, stays for its transition period, and is gone one round later.";
const bounded = "What the agent keeps is bounded by what the node has, and its requests by what changes.";
const oneAgent = "At no time do two agents have the state directory, and only the one that has it writes.";
const sameContainers =
  "An eviction stops no container that was started after it had stopped the first one, and no other agent continues it.";
const stopGrace = "The grace period of a StopContainer is the pod's own, or one that eviction.grace allows.";
const knownPods = "At rest the agent knows the pods of its node as the API server has them.";
const takenOver = "After an agent has ended, another one has the state directory within 15 seconds.";
const continued = "A consumer that continues at its cursor misses nothing, whatever happens to the agent.";
const running = "The agent ends only when it is told to.";

const ofHost = "What in-tree plugins answer in a round is what the host's files said then.";
const properties = "After quiet, the published properties of the machine are those of its files.";

const eviction = "packages/agent/src/eviction";
const intree = "packages/agent/src/intree";
const reporting = "packages/agent/src/reporting";
const decide = "packages/api/src/decide";
const state = "packages/agent/src/state";
const core = "packages/core/src";

/** Changes of one place each. */
export const mutations: readonly Mutation[] = [
  {
    name: "the state is not saved before an eviction is sent",
    file: `${eviction}/ledger.ts`,
    from: "this.#state = this.withProgress(this.#state);\n    const { log, records } = this.#options;",
    to: "this.#state = this.withProgress(this.#state);\n    if (progress.stage) return true;\n    const { log, records } = this.#options;",
    promise: truth,
    seed: 7,
  },
  {
    name: "limits are forgotten at a restart",
    file: `${eviction}/ledger.ts`,
    from: "elapsedSince(state, now, bootTime())), unrecorded: [] };",
    to: "elapsedSince(state, now, bootTime())), unrecorded: [], recent: [] };",
    promise: limited,
    seed: 11,
  },
  {
    name: "a limit allows one eviction too many",
    file: `${decide}/limits.ts`,
    from: "times.length < limit) return null;",
    to: "times.length <= limit) return null;",
    promise: limited,
    seed: 7,
  },
  {
    name: "limits are counted by the wall clock",
    file: `${decide}/state.ts`,
    from: "return by === 0 ? { ...state, at: now } : moved(state, by, now);",
    to: "return by > Number.MAX_VALUE ? moved(state, by, now) : { ...state, at: now };",
    promise: limited,
    seed: 30,
  },
  {
    name: "mirror pods are offered",
    file: `${decide}/candidates.ts`,
    from: 'if (pod.isMirror) return because("mirror");',
    to: "",
    promise: shielded,
    seed: 7,
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
    seed: 2,
  },
  {
    name: "a call to a plugin has no deadline",
    file: `${eviction}/ask/plugin-caller.ts`,
    from: "await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);",
    to: "await work(scope.signal);",
    promise: relieved,
    seed: 88,
  },
  {
    name: "the answer of an earlier round is used if a call fails",
    file: `${eviction}/ask/plugin-caller.ts`,
    from: "await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);",
    to: `await withDeadline(clock, { ms: deadlineMs }, scope.signal, work).then(
        (given) => ((plugin.given ??= {})[method] = given),
        (error) => { if (plugin.given?.[method]) return plugin.given[method]; throw error; });`,
    promise: answered,
    seed: 28,
  },
  {
    name: "dry run evicts",
    file: `${decide}/decide.ts`,
    from: "if (policy.dryRunPlugins.length === 0) return requested;",
    to: "if (policy.dryRunPlugins) return requested;",
    promise: dry,
    seed: 19,
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
    seed: 4,
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
    name: "a condition of a plugin that fails stays for ever",
    file: `${decide}/conditions.ts`,
    from: "if (now - condition.lastSeen >= policy.conditionTransitionPeriodMs) continue;",
    to: "",
    promise: tainted,
    seed: 10,
  },
  {
    name: "a failed write of an object is not retried",
    file: `${reporting}/publisher.ts`,
    from: "      this.#queue.addAfter(object, delayMs);",
    to: "",
    promise: published,
    seed: 6,
  },
  {
    name: "a plugin that registers again is not read",
    file: `${reporting}/manager.ts`,
    from: "    this.#start(endpoint, source);\n    this.#options.onChange",
    to: "    this.#running.signal.aborted || endpoint.message || this.#start(endpoint, source);\n    this.#options.onChange",
    promise: published,
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
    name: "pods of DaemonSets are offered",
    file: `${decide}/candidates.ts`,
    from: 'if (pod.owner?.kind === "DaemonSet" && !rules.evictDaemonSetPods)',
    to: 'if (pod.owner?.kind === "Pod")',
    promise: shielded,
    seed: 2,
  },
  {
    name: "a taint of another owner is removed",
    file: `${eviction}/act/node-taints.ts`,
    from: "!isComplete || !isOwn(taint) || desiredIds",
    to: "!isComplete || desiredIds",
    promise: foreign,
    seed: 2,
  },
  {
    name: "taints are written without the version that was read",
    file: `${eviction}/act/node-taints.ts`,
    from: "{ metadata: { resourceVersion, uid, ...",
    to: "{ metadata: { uid, ...",
    promise: foreign,
    seed: 133,
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
    seed: 4,
  },
  {
    name: "an eviction is not tried again",
    file: `${eviction}/act/evictor.ts`,
    from: "this.#queue.addAfter(task.pod.uid, delay);",
    to: "",
    promise: relieved,
    seed: 55,
  },
  {
    name: "the grace period of a threshold starts again in each round",
    file: `${decide}/thresholds.ts`,
    from: "const since = own && isSamePressure(own, answer, now) ? own.since : now;",
    to: "const since = now;",
    promise: relieved,
    seed: 48,
  },
  {
    name: "the value of a reporter is dropped as soon as it is lost",
    file: `${reporting}/manager.ts`,
    from: "this.#stop(endpoint, reason, 0);",
    to: "this.#drop(endpoint);",
    promise: kept,
    seed: 8,
  },
  {
    name: "an earlier report is stored than the one that is published",
    file: `${reporting}/checkpoint.ts`,
    from: "this.#changed.set(plugin, { plugin, content: stored, updatedAt, stoppedAt: stoppedAt ?? null });",
    to: `const firsts = ((this as any).firsts ??= new Map());
    if (!firsts.has(plugin)) firsts.set(plugin, stored);
    this.#changed.set(plugin, { plugin, content: firsts.get(plugin), updatedAt, stoppedAt: stoppedAt ?? null });`,
    promise: kept,
    seed: 21,
  },
  {
    name: "the last value that is withdrawn is left",
    file: `${reporting}/object-writer.ts`,
    from: "return text !== applied;",
    to: 'return text !== "" && text !== applied;',
    promise: published,
    seed: 6,
  },
  {
    name: "a watch is not resumed after 410",
    file: "packages/core/src/kube/watcher.ts",
    from: 'else if (reason === "expired") this.#expired();',
    to: 'else if (reason === "expired") this.#needed = undefined;',
    promise: healthy,
    seed: 42,
  },
  {
    name: "a key that is added while it is in progress is lost",
    file: "packages/core/src/lib/work-queue.ts",
    from: "if (this.#needed.has(key)) this.#enqueue(key);",
    to: "this.#needed.delete(key);",
    promise: published,
    seed: 14,
  },
  {
    name: "a failed registration is not tried again",
    file: "packages/agent/src/plugins/session.ts",
    from: 'return this.#status.retry("failed");',
    to: "return;",
    promise: tainted,
    seed: 54,
  },
  {
    name: "readyz ignores failing checks",
    file: "packages/agent/src/server/health.ts",
    from: "failed ||= !ok;",
    to: "failed ||= false;",
    promise: deaf,
    seed: 4,
  },
  {
    name: "taints count as late although they are as desired",
    file: `${eviction}/act/node-tainter.ts`,
    from: "this.#writes.reconciled(signatureOf(desired));\n    this.#lateSince = undefined;",
    to: "this.#writes.reconciled(signatureOf(desired));",
    promise: healthy,
    seed: 4,
  },
  {
    name: "a ResourceSlice is left",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "deletes: stored.filter((slice) => !kept.has(slice)),",
    to: "deletes: [],",
    promise: noLeftovers,
    seed: 30,
  },
  {
    name: "a claim is answered without its CDI file",
    file: "packages/agent/src/claims/driver-preparation.ts",
    from: "else directory.write(driver, uid, prepared.cdi);",
    to: "",
    promise: toldPrepared,
    seed: 1,
  },
  {
    name: "a claim is not unprepared",
    file: "packages/agent/src/claims/preparation.ts",
    from: "await this.#unpreparation.run(driver, claim, signal, call.signal);",
    to: "",
    promise: claims,
    seed: 8,
  },
  {
    name: "a claim that the kubelet could not unprepare is not prepared for the next pod",
    file: "packages/agent/src/claims/interrupted-unprepare.ts",
    from: "if (users.length === 0 || !connection) {",
    to: "if (users.length >= 0 || !connection) {",
    promise: cdiFiles,
    seed: 534,
  },
  {
    name: "a claim is unprepared while containers use it",
    file: "packages/agent/src/claims/unpreparation.ts",
    from: "if (record) await this.#checkUnused(record, signal);",
    to: "",
    promise: unused,
    seed: 7,
  },
  {
    name: "an exit is dropped if the container is removed before the next list",
    file: "packages/agent/src/lifecycle/diff.ts",
    from: '["ContainerRemoved"] : ["ContainerDied", "ContainerRemoved"];',
    to: '["ContainerRemoved"] : ["ContainerRemoved"];',
    promise: toldOnce,
    seed: 2,
  },
  {
    name: "a cursor is off by one",
    file: "packages/agent/src/lifecycle/event-reader.ts",
    from: "this.#sequence = after?.sequence ?? host.last;",
    to: "this.#sequence = after ? Math.min(after.sequence + 1, host.last) : host.last;",
    promise: toldOnce,
    seed: 4,
  },
  {
    name: "a late answer of a plugin is counted in a later round",
    file: `${eviction}/ask/plugin-caller.ts`,
    from: "await withDeadline(clock, { ms: deadlineMs }, scope.signal, work);",
    to: `await withDeadline(clock, { ms: deadlineMs }, scope.signal, () =>
        ((plugin.open ??= {})[method] ??= work(signal).finally(() => { delete plugin.open[method]; })));`,
    promise: relieved,
    seed: 67,
  },
  {
    name: "an acceptance is not recorded",
    file: `${eviction}/act/eviction-tasks.ts`,
    from: "ledger.progress({ uid: task.pod.uid, stage, at, deadline, ...stopsOf(task) });",
    to: 'if (stage !== "accepted") ledger.progress({ uid: task.pod.uid, stage, at, deadline, ...stopsOf(task) });',
    promise: truth,
    seed: 122,
  },
  {
    name: "the end of an eviction is kept in memory until the next round",
    file: `${eviction}/ledger.ts`,
    from: "    if (this.#writes.flush()) return;\n    const { uid } = outcome;",
    to: "    const { uid } = outcome;\n    if (uid) return;",
    promise: truth,
    seed: 754,
  },
  {
    name: "a plugin in dry run sets conditions",
    file: `${decide}/conditions.ts`,
    from: "    if (isDryRun(policy, answers.plugin)) continue;\n",
    to: "",
    promise: lasting,
    seed: 35,
  },
  {
    name: "an eviction of unknown outcome is explained as none",
    file: "packages/api/src/wording/verdict.ts",
    from: '    case "superseded":\n',
    to: '    case "superseded":\n    case "unknown":\n',
    promise: truth,
    seed: 9,
  },
  {
    name: "the list of evictions shows an outcome beside another pod",
    file: `${eviction}/records/recorded-evictions.ts`,
    from: "const eviction = this.#open.get(outcome.uid);",
    to: "const [eviction] = this.#open.values();",
    promise: ownOutcome,
    seed: 54,
  },
  {
    name: "a device of another claim is prepared",
    file: "packages/agent/src/claims/hand-on.ts",
    from: ".filter((other) => other.uid !== uid &&",
    to: ".filter((other) => other.uid === uid &&",
    promise: exclusive,
    seed: 3,
  },
  {
    name: "claims that are prepared at one time are not compared",
    file: "packages/agent/src/claims/driver-preparation.ts",
    from: "handOn.refuseConflicts(driver, claim.uid, allocation.devices);",
    to: "",
    promise: exclusive,
    seed: 104,
  },
  {
    name: "slices of another client in a pool are ignored",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "const foreignByPool = Map.groupBy(foreign,",
    to: "const foreignByPool = Map.groupBy([] as typeof foreign,",
    promise: allocatable,
    seed: 74,
  },
  {
    name: "a removed pool is left",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "return [...removals, ...plans].filter(",
    to: "return plans.filter(",
    promise: allocatable,
    seed: 30,
  },
  {
    name: "a condition ends with its first round without a report",
    file: `${decide}/conditions.ts`,
    from: "now - condition.lastSeen >= policy.conditionTransitionPeriodMs",
    to: "now > condition.lastSeen",
    promise: lasting,
    seed: 4,
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
    name: "slices that are not written for long fail no check",
    file: "packages/agent/src/devices/sync/health.ts",
    from: "ok: !isAll || !problems.every(({ problem: own }) => isBad(own)),",
    to: "ok: true,",
    promise: noticed,
    seed: 20,
  },
  {
    name: "an object that is not written for long fails no check",
    file: `${reporting}/object-writer.ts`,
    from: "waitedMs > UNHEALTHY_AFTER_MS || isNonRetryable(error.code)",
    to: "isNonRetryable(error.code)",
    promise: noticed,
    seed: 16,
  },
  {
    name: "a pod is found by its name, whatever UID the plugin names",
    file: `${decide}/asks.ts`,
    from: "const found = this.#candidates.get(named.uid) ??",
    to: "const found = [...this.#candidates.values()].find((pod) => pod.name === named.name) ??",
    promise: named,
    seed: 49,
  },
  {
    name: "a pod is evicted that was named under another namespace",
    file: `${decide}/asks.ts`,
    from: "if (differs(named.name, found.name) || differs(named.namespace, found.namespace)) {",
    to: "if (differs(named.name, found.name)) {",
    promise: named,
    seed: 49,
  },
  {
    name: "a hard threshold evicts all pods that the plugin names",
    file: `${decide}/asks.ts`,
    from: "return { pods: pods.slice(0, 1), named };",
    to: "return { pods, named };",
    promise: onePod,
    seed: 7,
  },
  {
    name: "a refused request is not recorded",
    file: `${decide}/asks.ts`,
    from: "this.#refusals.add(plugin, found, found.reason, found.detail);",
    to: "",
    promise: explained,
    seed: 21,
  },
  {
    name: "a requested grace period has no maximum",
    file: `${decide}/grace.ts`,
    from: "if (requested > rules.longestSeconds) {",
    to: "if (requested > Number.MAX_VALUE) {",
    promise: grace,
    seed: 8,
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
    name: "an answer of an instance that was replaced is used",
    file: `${eviction}/ask/plugin-round.ts`,
    from: 'if (!plugin?.scope.signal.aborted || "failure" in answered) return answered;',
    to: "if (plugin || answered) return answered;",
    promise: current,
    seed: 79,
  },
  {
    name: "a device that a driver reports twice is published twice",
    file: "packages/agent/src/devices/model/validate.ts",
    from: '? "duplicates the name of an earlier device"',
    to: "? undefined",
    promise: whole,
    seed: 8,
  },
  {
    name: "a device that a driver did not prepare is taken for prepared",
    file: "packages/agent/src/claims/prepared-claim.ts",
    from: "if (!answer) throw new",
    to: "if (!answer && answered.length > 0) continue;\n    if (!answer) throw new",
    promise: toldPrepared,
    seed: 362,
  },
  {
    name: "in-tree: more free memory than the minimum is pressure",
    file: `${intree}/eviction/system-memory.ts`,
    from: 'freeBytes < threshold ? "reclaimed" : "none";',
    to: 'freeBytes > threshold ? "reclaimed" : "none";',
    promise: ofHost,
    seed: 2,
  },
  {
    name: "in-tree: memory that can't be read is still short",
    file: `${intree}/eviction/system-memory.ts`,
    from: 'const state = valueIn("memory", memory);',
    to: 'const state = valueIn("memory", memory);\n    if (!state && this.#verdict) return;',
    promise: ofHost,
    seed: 80,
  },
  {
    name: "in-tree: free memory that is missing in the file counts as none",
    file: "packages/agent/src/host/memory.ts",
    from: 'const freeBytes = memoryLine(text, "MemFree");',
    to: 'const freeBytes = memoryLine(text, "MemFree") ?? 0;',
    promise: ofHost,
    seed: 90,
  },
  {
    name: "in-tree: stalls that have ended count on",
    file: `${intree}/eviction/system-memory.ts`,
    from: 'severity: "none", since: undefined };',
    to: 'severity: "none", since };',
    promise: ofHost,
    seed: 88,
  },
  {
    name: "in-tree: a pod with few processes has too many",
    file: `${intree}/eviction/overuse.ts`,
    from: "(pidsOf(pod) ?? 0) > threshold",
    to: "(pidsOf(pod) ?? threshold) < threshold",
    promise: named,
    seed: 2,
  },
  {
    name: "in-tree: a condition without a met threshold is lost",
    file: `${intree}/eviction/in-tree-plugin.ts`,
    from: 'metType === "none" ? nodeCondition(condition) : null',
    to: "null",
    promise: tainted,
    seed: 2,
  },
  {
    name: "in-tree: the online CPUs of the machine are read once",
    file: `${intree}/system-facts.ts`,
    from: "take(host.onlineCpus(signal), before.onlineCpus),",
    to: "before.onlineCpus ?? take(host.onlineCpus(signal), undefined),",
    promise: properties,
    seed: 88,
  },
  {
    name: "two agents: the state directory is not locked",
    file: `${state}/directory-lock.ts`,
    from: 'so it needs no journal on disk.\n      connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");',
    to: '\n      connection.exec("PRAGMA journal_mode = MEMORY; BEGIN");',
    promise: oneAgent,
    seed: 4,
  },
  {
    name: "two agents: an agent hands over before its parts have stopped",
    file: "packages/agent/src/agent.ts",
    from: "abandoned = await runInOrder(runnables, { clock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);",
    to: `const stopping = new Promise<string[]>((resolve) => signal.addEventListener("abort", () => resolve([])));
        const ended = runInOrder(runnables, { clock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);
        abandoned = await Promise.race([stopping, ended]);`,
    promise: running,
    seed: 46,
  },
  {
    name: "two agents: one that has handed over never takes its turn again",
    file: "packages/agent/src/assembly/handover.ts",
    from: "while (!signal.aborted && !DirectoryLock.isFree(stateDir)) await",
    to: "while (!signal.aborted && (this.#hasHandedOver || !DirectoryLock.isFree(stateDir))) await",
    promise: takenOver,
    seed: 45,
  },
  {
    name: "two agents: one that hands over keeps the lock",
    file: `${state}/database.ts`,
    from: "    this.#disk.marker?.[Symbol.dispose]();\n    this.#disk.lock?.[Symbol.dispose]();\n",
    to: "    this.#disk.marker?.[Symbol.dispose]();\n",
    promise: takenOver,
    seed: 24,
  },
  {
    name: "two agents: the one that has the state directory is not named",
    file: `${state}/directory-lock.ts`,
    from: "    introduce(holderFile, now);\n",
    to: "",
    promise: running,
    seed: 5,
  },
  {
    name: "disk: what could not be written is not written again",
    file: `${state}/write-behind.ts`,
    from: "this.soon(RETRY_MS);",
    to: "",
    promise: healthy,
    seed: 61,
  },
  {
    name: "disk: an agent does not start on a read-only disk",
    file: `${state}/database.ts`,
    from: "if (!isDiskTrouble(error)) {",
    to: "if (error) {",
    promise: takenOver,
    seed: 20,
  },
  {
    name: "disk: an agent that starts on a read-only disk reads nothing of what is stored",
    file: `${state}/open-usable.ts`,
    from: "openInMemory(path)",
    to: 'openInMemory("")',
    promise: continued,
    seed: 96,
  },
  {
    name: "bounds: listeners of a scope that has ended are left",
    file: `${core}/lib/abort.ts`,
    from: 'for (const parent of parents) parent?.removeEventListener("abort", onAbort);',
    to: "",
    promise: bounded,
    seed: 68,
  },
  {
    name: "bounds: turns of a plugin that has registered are kept",
    file: "packages/agent/src/plugins/registered-plugins.ts",
    from: "if (this.#turns.get(key) === settled) this.#turns.delete(key);",
    to: "",
    promise: bounded,
    seed: 68,
  },
  {
    name: "bounds: the lock of a claim that is not in use is kept",
    file: "packages/agent/src/claims/unpreparation.ts",
    from: "if (--lock.users === 0) this.#locks.delete(key);",
    to: "",
    promise: bounded,
    seed: 176,
  },
  {
    name: "bounds: metrics of a plugin that was removed are kept",
    file: `${eviction}/metrics.ts`,
    from: "metrics.callDuration.remove({ plugin });",
    to: "",
    promise: bounded,
    seed: 68,
  },
  {
    name: "quiet: readings are sampled fifty times as often",
    file: `${eviction}/ask/threshold-sampler.ts`,
    from: "await sleepOrAbort(clock, pauseMs, signal);",
    to: "await sleepOrAbort(clock, pauseMs / 50, signal);",
    promise: idle,
    seed: 28,
  },
  {
    name: "quiet: directories are scanned twice a second",
    file: "packages/agent/src/plugins/socket-watcher.ts",
    from: "Math.max(settings.rescanInterval - gapMs, 0)",
    to: "maxGapMs",
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
    name: "bounds: sessions that have ended are kept",
    file: "packages/agent/src/plugins/manager.ts",
    from: "this.#running.delete(finished);",
    to: "",
    promise: bounded,
    seed: 68,
  },
  {
    name: "requests: all ResourceSlices are compared every two seconds",
    file: "packages/agent/src/devices/sync/session.ts",
    from: "const restMs = comparedAt + periodMs - clock.monotonic();",
    to: "periodMs = 2_000;\n      const restMs = comparedAt + periodMs - clock.monotonic();",
    promise: bounded,
    seed: 68,
  },
  {
    name: "requests: all slices of a pool are written if one has changed",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "const rises = stored.length === 0 || isContested ||",
    to: "const rises = true || isContested ||",
    promise: bounded,
    seed: 104,
  },
  {
    name: "requests: the Node is read in each round",
    file: `${eviction}/act/node-tainter.ts`,
    from: "    this.#reports.desired(desired);\n    this.#compare();",
    to: "    this.#reports.desired(desired);\n    void this.#read(new AbortController().signal).catch(() => {});\n    this.#compare();",
    promise: bounded,
    seed: 140,
  },
  {
    name: "quiet: the depth of a queue is not updated when its last key is taken",
    file: `${core}/lib/work-queue.ts`,
    from: "    this.#metrics?.depth(this.name, this.#queue.length);\n    this.#needed.delete(key);",
    to: "    this.#needed.delete(key);",
    promise: idle,
    seed: 28,
  },
  {
    name: "stops: a later attempt stops containers that were started after the first",
    file: `${eviction}/act/container-killer.ts`,
    from: "(chosen?.has(id) ?? true)",
    to: "(chosen?.has(id) || true)",
    promise: sameContainers,
    seed: 23,
  },
  {
    name: "stops: containers count as stopped without a fresh reading",
    file: `${eviction}/act/container-killer.ts`,
    from: "      if (running.length === 0) return",
    to: "      if (running.length >= 0) return",
    promise: trueEvents,
    seed: 88,
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
    seed: 254,
  },
  {
    name: "stops: a pod of which no container runs is forgotten",
    file: `${eviction}/act/eviction-sender.ts`,
    from: '      case "exited":\n',
    to: '      case "exited":\n        task.isGone = true;\n',
    promise: knownPods,
    seed: 75,
  },
  {
    name: "stops: StopContainer is not recorded before it is sent",
    file: `${eviction}/act/eviction-sender.ts`,
    from: "if (!onSending()) {",
    to: 'if (name !== "containerStop" && !onSending()) {',
    promise: truth,
    seed: 80,
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
    seed: 11,
  },
  ...bindingMutations,
  ...poolMutations,
];
