import {
  type HealthCheck,
  type HealthResult,
  NodekeeperError,
  stopped,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { HostSample } from "../../host/index.ts";
import type { PluginExchanges, PluginHandler, PluginRegistration } from "../../plugins/index.ts";
import type { ConditionProblem } from "../decide/taints.ts";
import { forgetPlugin } from "../round-metrics.ts";
import type { RoundRequest } from "../round-pacing.ts";
import type { EvictionSettings } from "../round-settings.ts";
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
  /** For registrations; rounds have their own. */
  settings: () => Pick<EvictionSettings, "callTimeoutMs" | "syncPeriodMs">;
  /** Authenticates a plugin before it is registered; undefined where none is required. */
  tokenCheck: () => TokenCheck | undefined;
  /** Called when a plugin behind a socket requests a round, at most once per second and plugin. Default: ignored. */
  onRoundRequest?: (request: RoundRequest) => void;
}

/** The eviction plugins, in-tree and behind sockets, each with its channel while it is registered. */
export class EvictionPlugins implements PluginHandler {
  readonly type = "EvictionPlugin";
  readonly #options: EvictionPluginsOptions;
  readonly #caller: PluginCaller;
  readonly #served = new Map<string, ServedPlugin>();
  readonly #unsampled = new WeakSet<ServedPlugin>();
  /** Plugins removed since the last round ended; the current round may still add to their metric series. */
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
   * Replaces in-tree plugins, as when policy files change; effective from the next round on: a round under way calls those
   * that it started with, which are closed at its end. Throws `conflict` for a name that another plugin has, and then
   * changes nothing.
   * @param names the plugins to remove
   */
  replaceInTree(names: readonly string[], sources: readonly EvictionSource[]): void {
    const taken = sources.find(({ name }) => this.#served.has(name) && !names.includes(name));
    if (taken)
      throw new NodekeeperError("conflict", `${taken.name} is the name of another eviction plugin`, {
        id: "NK1605",
      });
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

  /** Names of the plugins that rounds call, sorted. */
  get names(): string[] {
    return [...this.#served.keys()].sort();
  }

  validate({ name, versions }: Omit<PluginRegistration, "generation">): void {
    if (this.#inTreeNames().includes(name)) {
      throw new NodekeeperError("conflict", `${name} is the name of an in-tree eviction plugin`, {
        id: "NK1304",
      });
    }
    if (versions.some((version) => VERSIONS.includes(version))) return;
    const offered = versions.join(", ").slice(0, 200) || "none";
    throw new NodekeeperError(
      "unsupported",
      `supported versions of EvictionPlugin: ${VERSIONS.join(", ")}; the plugin offers ${offered}`,
      { id: "NK1306" },
    );
  }

  async register(registration: PluginRegistration, signal: AbortSignal): Promise<void> {
    const { clock, tokenCheck, log, settings } = this.#options;
    const { name, endpoint } = registration;
    const calls = socketCalls(endpoint);
    try {
      const check = tokenCheck();
      if (check) {
        const what = `GetToken of ${name}`;
        const token = await withDeadline(clock, callTimeoutOf(settings()), what, signal, (scoped) =>
          calls.getToken(scoped),
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
      { errorId: "NK1609", plugin: name, reason },
      "eviction plugin disconnected, its conditions stay for the transition period",
    );
  }

  /**
   * Starts a round: the plugins that it calls are those registered now. One round at a time; dispose of it at its end.
   * @param settings those of the whole round
   */
  startRound(settings: Pick<EvictionSettings, "callTimeoutMs" | "syncPeriodMs">): PluginRound {
    this.#inRound = true;
    return new PluginRound({
      plugins: this.#served.values(),
      caller: this.#caller,
      timeoutMs: callTimeoutOf(settings),
      onEnd: () => this.#roundOver(),
    });
  }

  /**
   * Ends a round, after its metrics are counted. Keeps the refused conditions for `status` and logs those that the round
   * before did not have. Removes the metric series of removed plugins.
   */
  endRound(problems: readonly ConditionProblem[]): void {
    for (const name of this.#leavers) if (!this.#served.has(name)) forgetPlugin(this.#options.metrics, name);
    this.#leavers.clear();
    for (const plugin of this.#served.values()) {
      const refused = problems.filter(({ plugins }) => plugins.includes(plugin.name));
      for (const { condition, reason, message } of refused) {
        if (plugin.problems.includes(message)) continue;
        const fields = { errorId: "NK1608", plugin: plugin.name, condition, reason, message };
        this.#options.log.warn(fields, "condition of an eviction plugin refused");
      }
      plugin.problems = refused.map(({ message }) => message);
    }
  }

  // One whose sampling throws is not sampled again: a defect of one plugin stops neither the others nor its own rounds.
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

  /** Whether any plugin is to be sampled between rounds. */
  get areSampled(): boolean {
    return [...this.#served.values()].some(({ calls }) => calls.crossed !== undefined);
  }

  /** Requests for a round of the plugins that have a threshold which is crossed and was not by the sample before. */
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

  /** Closes all channels and refuses further registrations. Call when no round runs. */
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

  /** The last calls of a plugin; undefined where there is none of that name. */
  exchanges(name: string): PluginExchanges | undefined {
    return this.#served.get(name)?.exchanges.show();
  }

  /**
   * Fails while the last call to an in-tree plugin failed. A failing plugin behind a socket is named, but the check
   * passes: it must not make the agent unready.
   */
  healthCheck(): HealthCheck {
    return { name: "EvictionPluginsReady", kind: "ready", check: () => this.#check() };
  }

  #check(): HealthResult {
    const failing = this.status().flatMap(({ name, inTree, lastError }) =>
      lastError ? [{ name, inTree, ...lastError }] : [],
    );
    const [first] = failing;
    if (!first) return { ok: true, message: `${this.#served.size} plugins answer` };
    const texts = failing.map(({ name, message }) => `${name}: ${message}`);
    const ok = !failing.some(({ inTree }) => inTree);
    return { ok, message: texts.join("; ").slice(0, 2_000), errorId: first.id };
  }

  #roundOver(): void {
    this.#inRound = false;
    this.#closeReplaced();
  }

  #closeReplaced(): void {
    for (const plugin of this.#replaced.splice(0)) plugin.calls.close();
  }

  #left(name: string): void {
    forgetPlugin(this.#options.metrics, name);
    this.#leavers.add(name);
  }

  #inTreeNames(): string[] {
    return [...this.#served.values()].flatMap(({ name, registration }) => (registration ? [] : [name]));
  }

  #stop(name: string, reason: string): void {
    const plugin = this.#served.get(name);
    plugin?.scope.abort(stopped(reason));
    plugin?.calls.close();
  }
}

/** The deadline of a call, milliseconds: at most one period, so that a slow plugin does not delay the next round. */
function callTimeoutOf({
  callTimeoutMs,
  syncPeriodMs,
}: Pick<EvictionSettings, "callTimeoutMs" | "syncPeriodMs">) {
  return Math.min(callTimeoutMs, syncPeriodMs);
}
