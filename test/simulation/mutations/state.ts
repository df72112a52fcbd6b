import type { Mutation } from "./mutation.ts";

const published = "After quiet, what plugins last reported is what is published, and nothing else.";
const healthy = "If all is well, no health check fails.";
const deaf = "While the API server ends each watch at once, a health check fails.";
const idle =
  "An agent with nothing to do sends no writes, works once in each period, and keeps no work in queues.";
const toldOnce =
  "A consumer is told each transition of a container once, in order, and without gaps, or how many events it has missed.";
const bounded = "What the agent keeps is bounded by what the node has, and its requests by what changes.";
const oneAgent = "At no time do two agents have the state directory, and only the one that has it writes.";
const takenOver = "After an agent has ended, another one has the state directory within 15 seconds.";
const continued =
  "A consumer that continues at its cursor misses nothing, whatever happens to the agent, as long as its cursor is in the log.";
const cached = "At rest the cache of pods equals the runtime.";
const running = "The agent ends only when it is told to.";
const state = "packages/agent/src/state";
const core = "packages/core/src";
const archived =
  "After quiet, the archive has each eviction that the node has on record, with its outcome, or says that records are missing.";
const partChecked = "The check of a part fails while it does not work, and recovers with it.";

/** Defects of the state directory, of pods and their events, and of what all modules share. */
export const stateMutations: readonly Mutation[] = [
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
    seed: 13,
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
    seed: 14,
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
    seed: 84,
  },
  {
    name: "disk: what could not be written is not written again",
    file: `${state}/write-behind.ts`,
    from: "this.soon(RETRY_MS);",
    to: "",
    promise: healthy,
    seed: 6,
  },
  {
    name: "disk: an agent does not start on a read-only disk",
    file: `${state}/database.ts`,
    from: "if (!isDiskTrouble(error)) {",
    to: "if (error) {",
    promise: takenOver,
    seed: 2,
  },
  {
    name: "disk: an agent that starts on a read-only disk reads nothing of what is stored",
    file: `${state}/open-usable.ts`,
    from: "openInMemory(path)",
    to: 'openInMemory("")',
    promise: continued,
    seed: 164,
  },
  {
    name: "bounds: listeners of a scope that has ended are left",
    file: `${core}/lib/abort.ts`,
    from: 'for (const parent of parents) parent?.removeEventListener("abort", onAbort);',
    to: "",
    promise: bounded,
    seed: 176,
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
    name: "a rejected configuration fails no check",
    file: "packages/agent/src/config/watcher.ts",
    from: "return { ok: false, message: this.#problems, errorId: ConfigurationRefused.id };",
    to: "return { ok: true, message: this.#problems };",
    promise: partChecked,
    seed: 1,
  },
  {
    name: "a rejected policy fails no check",
    file: "packages/agent/src/assembly/policy-files.ts",
    from: "{ ok: false, message: this.#problem, errorId: PolicyRefused.id }",
    to: "{ ok: true, message: this.#problem }",
    promise: partChecked,
    seed: 22,
  },
  {
    name: "a runtime that hangs fails no check",
    file: "packages/agent/src/lifecycle/health.ts",
    from: "const ok = isListed && since <= unhealthyAfter;",
    to: "const ok = isListed;",
    promise: partChecked,
    seed: 7,
  },
  {
    name: "a registered plugin is missing in the list of plugins",
    file: "packages/agent/src/server/plugin-list.ts",
    from: "const rows = sockets.map(",
    to: "const rows = sockets.slice(1).map(",
    promise: "The list of plugins has those as registered that are, and no others.",
    seed: 1,
  },
  {
    name: "a consumer whose cursor fell off the log is told of one event too few",
    file: "packages/agent/src/lifecycle/event-reader.ts",
    from: "const missed = host.last - this.#sequence;",
    to: "const missed = host.last - this.#sequence - 1;",
    promise: toldOnce,
    seed: 38,
  },
  {
    name: "a container or sandbox of a list counts as unchanged",
    file: "packages/agent/src/runtime/known-items.ts",
    from: "if (known && bytes.compare(known.bytes, 0, known.bytes.length, start, counts) === 0) return known.item;",
    to: "if (known) return known.item;",
    promise: cached,
    seed: 176,
  },
  {
    name: "records that the collector did not accept are removed from the queue",
    file: "packages/agent/src/archive/sender.ts",
    from: "      this.#failed(delivery.message);",
    to: "      this.#failed(delivery.message);\n      queue.done(items.length, 0);",
    promise: archived,
    seed: 6,
  },
];
