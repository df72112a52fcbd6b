import type { Mutation } from "./mutation.ts";

const published = "After quiet, what plugins last reported is what is published, and nothing else.";
const kept =
  "What is published of a reporter is what it reported, never goes back to an earlier report, and stays while the reporter is away, for the grace period at least.";
const noticed =
  "While what changed can't be written, the health check that is about it fails, and not when it is written.";
const idle =
  "An agent with nothing to do sends no writes, works once in each period, and keeps no work in queues.";
const bounded = "What the agent keeps is bounded by what the node has, and its requests by what changes.";
const reporting = "packages/agent/src/reporting";

/** Defects of what is published of reporters, and of the registration of plugins. */
export const reportingMutations: readonly Mutation[] = [
  {
    name: "a failed write of an object is not retried",
    file: `${reporting}/publisher.ts`,
    from: "      this.#queue.addAfter(object, delayMs);",
    to: "",
    promise: published,
    seed: 9,
  },
  {
    name: "a plugin that registers again is not read",
    file: `${reporting}/manager.ts`,
    from: "    this.#start(endpoint, source);\n    this.#options.onChange",
    to: "    this.#running.signal.aborted || endpoint.message || this.#start(endpoint, source);\n    this.#options.onChange",
    promise: published,
    seed: 5,
  },
  {
    name: "the value of a reporter is dropped as soon as it is lost",
    file: `${reporting}/manager.ts`,
    from: "this.#stop(endpoint, reason);",
    to: "this.#drop(endpoint);",
    promise: kept,
    seed: 23,
  },
  {
    name: "an earlier report is stored than the one that is published",
    file: `${reporting}/checkpoint.ts`,
    from: "this.#changed.set(plugin, {\n      plugin,\n      content: stored,",
    to: `const firsts = ((this as any).firsts ??= new Map());
    if (!firsts.has(plugin)) firsts.set(plugin, stored);
    this.#changed.set(plugin, {
      plugin,
      content: firsts.get(plugin),`,
    promise: kept,
    seed: 4,
  },
  {
    name: "how long a reporter was away before a start is measured by the wall clock",
    file: `${reporting}/manager.ts`,
    from: "elapsedSince({ at: stoppedAt, boot: stoppedIn }, clock.now(), boot)",
    to: "(void elapsedSince, void boot, void stoppedIn, Math.max(clock.now() - (stoppedAt ?? clock.now()), 0))",
    promise: kept,
    seed: 489,
  },
  {
    name: "the last value that is withdrawn is left",
    file: `${reporting}/object-writer.ts`,
    from: "return text !== applied;",
    to: 'return text !== "" && text !== applied;',
    promise: published,
    seed: 12,
  },
  {
    name: "a failed registration is not tried again",
    file: "packages/agent/src/plugins/session.ts",
    from: 'return this.#status.retry("failed");',
    to: "return;",
    promise: published,
    seed: 298,
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
    name: "bounds: turns of a plugin that has registered are kept",
    file: "packages/agent/src/plugins/registered-plugins.ts",
    from: "if (this.#turns.get(key) === settled) this.#turns.delete(key);",
    to: "",
    promise: bounded,
    seed: 176,
  },
  {
    name: "a late write of an earlier agent to a part that this one has not written is not noticed",
    file: `${reporting}/object-writer.ts`,
    from: "this.#watch.expect(part, live);",
    to: "",
    promise: published,
    seed: 2784,
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
    name: "bounds: sessions that have ended are kept",
    file: "packages/agent/src/plugins/manager.ts",
    from: "this.#running.delete(finished);",
    to: "",
    promise: bounded,
    seed: 176,
  },
  {
    name: "what a reporter that is uninstalled has published is left",
    file: `${reporting}/manager.ts`,
    from: "endpoint.grace = clock.after(end - clock.monotonic(), () => this.#drop(endpoint));",
    to: "",
    promise:
      "What is published of a reporter that is uninstalled is withdrawn after the grace period, and not before.",
    seed: 3,
  },
];
