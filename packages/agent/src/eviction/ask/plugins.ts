import type { ConditionProblem, EvictionPolicy } from "@nodekeeper/api/decide";
import {
  EvictionPluginDisconnected,
  EvictionPluginNameInUse,
  PluginConditionRefused,
} from "@nodekeeper/api/errors";
import type { EvictionSettings } from "@nodekeeper/api/settings";
import { counted } from "@nodekeeper/api/wording";
import { type HealthCheck, type HealthResult, stopped, withDeadline } from "@nodekeeper/core/lib";
import type { HostSample } from "../../host/index.ts";
import {
  checkSupportedVersion,
  type PluginExchanges,
  type PluginHandler,
  type PluginRegistration,
  type PresentedPlugin,
} from "../../plugins/index.ts";
import { forgetPlugin } from "../metrics.ts";
import type { RoundPacing, RoundRequest } from "../round-pacing.ts";
import { followRoundRequests } from "./follow-round-requests.ts";
import { PluginCaller, type PluginCallerOptions } from "./plugin-caller.ts";
import { PluginRound } from "./plugin-round.ts";
import { type EvictionPluginStatus, newServedPlugin, type ServedPlugin, statusOf } from "./served-plugin.ts";
import { socketCalls } from "./socket-calls.ts";
import { type EvictionSource, inTreeCalls } from "./source.ts";
import type { TokenCheck } from "./token-check.ts";

const VERSIONS = ["v1alpha1"];

export interface EvictionPluginsOptions extends PluginCallerOptions {
  inTree: readonly EvictionSource[];
  /** Used for registrations. A round receives its settings in `startRound`. */
  settings: () => Pick<EvictionSettings, "callTimeout" | "syncPeriod">;
  /** Its transition period is how long the conditions of a lost plugin stay. Default: 0. */
  policy?: () => Pick<EvictionPolicy, "conditionTransitionPeriodMs">;
  /** Authenticates a plugin before it is registered; undefined if no authentication is required. */
  tokenCheck: () => TokenCheck | undefined;
  /** Receives the round requests of plugins behind sockets, at most one per second each. Undefined to ignore them. */
  pacing?: Pick<RoundPacing, "request">;
}

/** The eviction plugins, in-tree and behind sockets. A plugin behind a socket has a channel while it is registered. */
export class EvictionPlugins implements PluginHandler {
  readonly type = "EvictionPlugin";
  readonly #options: EvictionPluginsOptions;
  readonly #caller: PluginCaller;
  readonly #served = new Map<string, ServedPlugin>();
  readonly #unsampled = new WeakSet<ServedPlugin>();
  /** Plugins removed since the end of the last round. The current round may still add to their metric series. */
  readonly #leavers = new Set<string>();
  /** In-tree plugins that were replaced while a round calls them. */
  #replaced: ServedPlugin[] = [];
  #inRound = false;
  #isClosed = false;

  constructor(options: EvictionPluginsOptions) {
    this.#options = options;
    this.#caller = new PluginCaller(options);
    for (const source of options.inTree) {
      this.#served.set(source.name, newServedPlugin(source.name, undefined, inTreeCalls(source)));
    }
    options.metrics.plugins.set(this.#served.size);
  }

  /**
   * Replaces in-tree plugins, for example when policy files change. Takes effect in the next round: a round in progress
   * calls the plugins that it started with, which are closed at its end. Throws `conflict` and changes nothing if a
   * name is already used by another plugin.
   * @param names the plugins to remove
   */
  replaceInTree(names: readonly string[], sources: readonly EvictionSource[]): void {
    const taken = sources.find(({ name }) => this.#served.has(name) && !names.includes(name));
    if (taken) throw new EvictionPluginNameInUse({ name: taken.name });
    for (const name of names) {
      const plugin = this.#served.get(name);
      if (plugin) this.#replaced.push(plugin);
      this.#served.delete(name);
    }
    for (const source of sources) {
      this.#served.set(source.name, newServedPlugin(source.name, undefined, inTreeCalls(source)));
    }
    for (const name of names) if (!this.#served.has(name)) this.#left(name);
    this.#options.metrics.plugins.set(this.#served.size);
    if (!this.#inRound) this.#closeReplaced();
  }

  /** Names of in-tree plugins. External plugins may not use them. */
  get inTreeNames(): ReadonlySet<string> {
    return new Set(
      [...this.#served.values()].flatMap(({ name, registration }) => (registration ? [] : [name])),
    );
  }

  /** Names of the plugins that rounds call, sorted. */
  get names(): string[] {
    return [...this.#served.keys()].sort();
  }

  validate(candidate: PresentedPlugin): void {
    checkSupportedVersion(candidate, VERSIONS);
  }

  async register(registration: PluginRegistration, signal: AbortSignal): Promise<void> {
    const { clock, tokenCheck, log, settings } = this.#options;
    const { name, endpoint } = registration;
    const calls = socketCalls(endpoint);
    try {
      const check = tokenCheck();
      if (check) {
        const what = `GetToken of ${name}`;
        const token = await withDeadline(
          clock,
          { ms: callTimeoutOf(settings()), name: what },
          signal,
          (scoped) => calls.getToken(scoped),
        );
        await check(name, token, signal);
      }
      signal.throwIfAborted();
      if (this.#isClosed) throw stopped("eviction has stopped");
    } catch (error) {
      calls.close();
      throw error;
    }
    const older = this.#served.get(name);
    if (older) older.replaced = true;
    this.#stop(name, "replaced by a newer registration");
    const plugin = newServedPlugin(name, registration, calls);
    this.#served.set(name, plugin);
    this.#options.metrics.plugins.set(this.#served.size);
    void followRoundRequests(plugin, this.#options);
    log.info({ plugin: name, endpoint }, "eviction plugin registered");
  }

  deregister(registration: PluginRegistration, reason: string): void {
    const { name, generation } = registration;
    if (this.#served.get(name)?.registration?.generation !== generation) return;
    this.#stop(name, reason);
    this.#served.delete(name);
    const { log, metrics } = this.#options;
    metrics.plugins.set(this.#served.size);
    this.#left(name);
    log.warn(
      { errorId: EvictionPluginDisconnected.id, plugin: name, reason },
      "eviction plugin disconnected, its conditions stay for the transition period",
    );
  }

  /** Returns the transition period, during which the conditions of a lost plugin stay. */
  holdMs(): number {
    return this.#options.policy?.().conditionTransitionPeriodMs ?? 0;
  }

  // Conditions belong to the node and end with their transition period.
  forget(): void {}

  /**
   * Starts a round, which calls the plugins registered now. Only one round at a time; dispose of it at its end.
   * @param settings the settings of the whole round
   */
  startRound(settings: Pick<EvictionSettings, "callTimeout" | "syncPeriod">): PluginRound {
    this.#inRound = true;
    return new PluginRound({
      plugins: this.#served.values(),
      caller: this.#caller,
      timeoutMs: callTimeoutOf(settings),
      onEnd: () => this.#roundOver(),
    });
  }

  /**
   * Ends a round after its metrics are counted. Stores the refused conditions for `status`, and logs those that the
   * previous round did not refuse. Removes the metric series of removed plugins.
   */
  endRound(problems: readonly ConditionProblem[]): void {
    for (const name of this.#leavers) if (!this.#served.has(name)) forgetPlugin(this.#options.metrics, name);
    this.#leavers.clear();
    for (const plugin of this.#served.values()) {
      const refused = problems.filter(({ plugins }) => plugins.includes(plugin.name));
      for (const { condition, reason, message } of refused) {
        if (plugin.problems.includes(message)) continue;
        const fields = {
          errorId: PluginConditionRefused.id,
          plugin: plugin.name,
          condition,
          reason,
          message,
        };
        this.#options.log.warn(fields, "condition of an eviction plugin refused");
      }
      plugin.problems = refused.map(({ message }) => message);
    }
  }

  // A plugin whose sampling throws is not sampled again: its defect affects neither other plugins nor its own rounds.
  #crossedBy(plugin: ServedPlugin, sample: HostSample): readonly string[] {
    if (!plugin.calls.crossed || this.#unsampled.has(plugin)) return [];
    try {
      return plugin.calls.crossed(sample);
    } catch (error) {
      this.#unsampled.add(plugin);
      this.#options.log.error({ err: error, plugin: plugin.name }, "eviction plugin can't be sampled");
      return [];
    }
  }

  /** Whether any plugin has thresholds to sample between rounds. */
  get areSampled(): boolean {
    return [...this.#served.values()].some(({ calls }) => calls.crossed !== undefined);
  }

  /** Returns round requests for the plugins with a crossed threshold that the previous sample did not cross. */
  newlyCrossed(sample: HostSample): RoundRequest[] {
    const requests: RoundRequest[] = [];
    for (const plugin of this.#served.values()) {
      const before = plugin.crossed;
      plugin.crossed = this.#crossedBy(plugin, sample);
      const added = plugin.crossed.filter((threshold) => !before.includes(threshold));
      if (added.length > 0) requests.push({ plugin: plugin.name, reason: `crossed: ${added.join(", ")}` });
    }
    return requests;
  }

  /** Closes all channels and refuses further registrations. Call only if no round is running. */
  close(): void {
    this.#isClosed = true;
    for (const plugin of this.#served.values()) {
      if (plugin.registration === undefined) continue;
      this.#stop(plugin.name, "eviction stops");
      this.#served.delete(plugin.name);
    }
  }

  status(): EvictionPluginStatus[] {
    return this.names.map((name) => statusOf(this.#served.get(name)!));
  }

  /** Returns the last calls of a plugin; undefined if there is no plugin of that name. */
  exchanges(name: string): PluginExchanges | undefined {
    return this.#served.get(name)?.exchanges.show();
  }

  /**
   * Fails if the last call to an in-tree plugin failed. Passes if only plugins behind sockets fail, because they must
   * not make the agent unready; the message names them.
   */
  healthCheck(): HealthCheck {
    return { name: "EvictionPluginsReady", kind: "ready", check: () => this.#check() };
  }

  #check(): HealthResult {
    const failing = this.status().flatMap(({ name, inTree, lastError }) =>
      lastError ? [{ name, inTree, ...lastError }] : [],
    );
    const [first] = failing;
    if (!first) return { ok: true, message: `${counted(this.#served.size, "plugin")}, none failing` };
    const texts = failing.map(({ name, message }) => `${name}: ${message}`);
    const ok = !failing.some(({ inTree }) => inTree);
    return { ok, message: texts.join("; ").slice(0, 2_000), errorId: first.id };
  }

  #roundOver(): void {
    this.#inRound = false;
    this.#closeReplaced();
  }

  #closeReplaced(): void {
    for (const { name, calls } of this.#replaced.splice(0)) calls.close(this.inTreeNames.has(name));
  }

  #left(name: string): void {
    forgetPlugin(this.#options.metrics, name);
    this.#leavers.add(name);
  }

  #stop(name: string, reason: string): void {
    const plugin = this.#served.get(name);
    plugin?.scope.abort(stopped(reason));
    plugin?.calls.close();
  }
}

/**
 * Returns the deadline of a call, milliseconds: at most one period, so that a slow plugin does not delay the next
 * round.
 */
function callTimeoutOf({ callTimeout, syncPeriod }: Pick<EvictionSettings, "callTimeout" | "syncPeriod">) {
  return Math.min(callTimeout, syncPeriod);
}
