import { readFile } from "node:fs/promises";
import { PolicyRefused, PolicyUnknown } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import {
  type Clock,
  type HealthCheck,
  type Logger,
  messageOf,
  type Runnable,
  sleepOrAbort,
  stampOf,
} from "@nodekeeper/core/lib";
import type { EvictionPlugins, EvictionSource } from "../eviction/index.ts";
import { enabledPlugins } from "../intree/index.ts";
import { describeProblem, loadPolicies, type Policy, type PolicyProblem } from "../policy/index.ts";

export interface PolicyFilesOptions {
  /** Paths; read again at each check. */
  files: () => readonly string[];
  /** Patterns of policies to run: "*", "name", "-name"; read again at each check. */
  enabled: () => readonly string[];
  plugins: Pick<EvictionPlugins, "replaceInTree">;
  /** Returns a new plugin for a policy. */
  sourceOf: (policy: Policy) => EvictionSource;
  clock: Clock;
  log: Logger;
}

/** The policies of one file. */
interface KnownFile {
  /** Changes when the file changes. */
  fingerprint: string;
  policies: Policy[];
  problems: PolicyProblem[];
}

const FIRST_CHECK_MS = 5_000;
const CHECK_INTERVAL_MS = 10_000;

/**
 * Reloads policy files when they change, and replaces their eviction plugins. Policies of unchanged files keep their
 * plugins. An invalid policy is refused with its position, and the others run. If a file becomes invalid, its last valid
 * policies continue to run.
 */
export class PolicyFiles implements Runnable {
  readonly name = "eviction-policies";
  readonly #options: PolicyFilesOptions;
  readonly #checked = Promise.withResolvers<void>();
  #known = new Map<string, KnownFile>();
  #running = new Map<Policy, EvictionSource>();
  #patterns = "";
  /** Whether the last changes could not be applied, for example because another plugin has the name of a policy. */
  #hasFailed = false;
  #problem: string | undefined = "the policies are not loaded yet";

  constructor(options: PolicyFilesOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    clock.sleep(FIRST_CHECK_MS, signal).then(this.#checked.resolve, () => {});
    while (!signal.aborted) {
      await this.check();
      this.#checked.resolve();
      await sleepOrAbort(clock, CHECK_INTERVAL_MS, signal);
    }
  }

  /**
   * Resolves after the first check, so that the first round includes the policies. A file that can't be read, as on a
   * network filesystem that hangs, delays the other parts by at most 5 s.
   */
  ready(): Promise<void> {
    return this.#checked.promise;
  }

  /** Checks the files and applies changes. */
  async check(): Promise<void> {
    const { files, enabled } = this.#options;
    const patterns = JSON.stringify(enabled());
    const known = new Map<string, KnownFile>();
    for (const file of files()) known.set(file, await this.#look(file));
    const isChanged =
      patterns !== this.#patterns ||
      known.size !== this.#known.size ||
      [...known].some(([file, content]) => this.#known.get(file) !== content);
    this.#known = known;
    this.#patterns = patterns;
    if (isChanged || this.#hasFailed) this.#apply(isChanged);
  }

  /** Fails while a policy is refused. */
  healthCheck(): HealthCheck {
    return {
      name: "EvictionPoliciesLoaded",
      kind: "ready",
      check: () =>
        this.#problem === undefined
          ? { ok: true, message: counted(this.#running.size, "policy", "policies") }
          : { ok: false, message: this.#problem, errorId: PolicyRefused.id },
    };
  }

  async #look(file: string): Promise<KnownFile> {
    const before = this.#known.get(file);
    try {
      const fingerprint = await stampOf(file);
      if (before?.fingerprint === fingerprint) return before;
      const { policies, problems } = await loadPolicies(file, await readFile(file, "utf8"));
      const kept = problems.length > 0 && before ? before.policies : policies;
      return { fingerprint, policies: kept, problems };
    } catch (error) {
      const message = messageOf(error);
      if (before?.fingerprint === message) return before;
      const problem = { file, policy: "", field: "", line: 0, column: 0, message };
      return { fingerprint: message, policies: before?.policies ?? [], problems: [problem] };
    }
  }

  #apply(isNews: boolean): void {
    const { log } = this.#options;
    const problems = [...this.#known.values()].flatMap((file) => file.problems).map(describeProblem);
    const policies = new Map<string, Policy>();
    for (const [file, content] of this.#known) {
      for (const policy of content.policies) {
        if (policies.has(policy.name)) problems.push(`${file}: another file has a policy ${policy.name}`);
        else policies.set(policy.name, policy);
      }
    }
    this.#hasFailed = false;
    try {
      this.#replace(this.#enabled([...policies.keys()]).map((name) => policies.get(name)!));
    } catch (error) {
      this.#hasFailed = true;
      problems.push(messageOf(error));
    }
    this.#problem = problems.length > 0 ? problems.join("; ").slice(0, 2_000) : undefined;
    if (!isNews) return;
    for (const problem of problems)
      log.error({ errorId: PolicyRefused.id, problem }, "eviction policy refused");
    const running = [...this.#running.values()].map(({ name }) => name);
    log.info({ loaded: [...policies.keys()], plugins: running }, "eviction policies loaded");
  }

  // A plugin has the state of its threshold, such as pressure that lasts until the minimum is reclaimed.
  #replace(policies: readonly Policy[]): void {
    const { plugins, sourceOf } = this.#options;
    const before = this.#running;
    const running = new Map(policies.map((policy) => [policy, before.get(policy) ?? sourceOf(policy)]));
    const removed = [...before].filter(([policy]) => !running.has(policy));
    const added = [...running].filter(([policy]) => !before.has(policy));
    plugins.replaceInTree(
      removed.map(([, { name }]) => name),
      added.map(([, source]) => source),
    );
    this.#running = running;
  }

  // Unknown names only cause a warning: a node may exclude a policy that a file no longer has.
  #enabled(names: readonly string[]): string[] {
    const isKnown = (pattern: string) => pattern === "*" || names.includes(pattern.replace(/^-/, ""));
    const patterns = this.#options.enabled();
    const unknown = patterns.filter((pattern) => !isKnown(pattern));
    if (unknown.length > 0)
      this.#options.log.warn(
        { errorId: PolicyUnknown.id, patterns: unknown },
        "no eviction policy with this name",
      );
    return enabledPlugins(names, patterns.filter(isKnown));
  }
}
