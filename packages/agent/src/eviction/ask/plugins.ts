import {
  type HealthCheck,
  type HealthResult,
  NodekeeperError,
  stopped,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { HostSample } from "../../host/index.ts";
import type { PluginExchanges, PluginHandler, PluginRegistration } from "../../plugins/index.ts";
import type {
  Answered,
  EvictPodsAnswer,
  PluginAnswers,
  ThresholdAnswer,
  TopAnswer,
} from "../decide/answers.ts";
import type { TopQuestion } from "../decide/decision.ts";
import type { ConditionProblem } from "../decide/taints.ts";
import { forgetPlugin } from "../round-metrics.ts";
import type { RoundRequest } from "../round-pacing.ts";
import { noPods, noTopPods, notMet } from "./empty-answers.ts";
import { followRoundRequests } from "./follow-round-requests.ts";
import { type PluginCall, PluginCaller, type PluginCallerOptions } from "./plugin-caller.ts";
import type { PodOffer } from "./pod-offer.ts";
import { type EvictionPluginStatus, newServedPlugin, type ServedPlugin, statusOf } from "./served-plugin.ts";
import { socketCalls } from "./socket-calls.ts";
import { type EvictionSource, inTreeCalls } from "./source.ts";
import type { TokenCheck } from "./token-check.ts";

const VERSIONS = ["v1alpha1"];

export interface EvictionPluginsOptions extends PluginCallerOptions {
  inTree: readonly EvictionSource[];
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
   * Replaces in-tree plugins, as when policy files change; effective from the next round on. Throws `conflict` for a name
   * that another plugin has, and then changes nothing.
   * @param names the plugins to remove
   */
  replaceInTree(names: readonly string[], sources: readonly EvictionSource[]): void {
    const taken = sources.find(({ name }) => this.#served.has(name) && !names.includes(name));
    if (taken)
      throw new NodekeeperError("conflict", `${taken.name} is the name of another eviction plugin`, {
        id: "NK1605",
      });
    for (const name of names) {
      this.#served.get(name)?.calls.close();
      this.#served.delete(name);
    }
    for (const source of sources) {
      this.#served.set(source.name, newServedPlugin(source.name, undefined, inTreeCalls(source)));
    }
    for (const name of names) if (!this.#served.has(name)) this.#left(name);
    this.#options.metrics.plugins.set(this.#served.size);
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
    const { clock, tokenCheck, log } = this.#options;
    const { name, endpoint } = registration;
    const calls = socketCalls(endpoint);
    try {
      const check = tokenCheck();
      if (check) {
        const what = `GetToken of ${name}`;
        const token = await withDeadline(clock, this.#caller.timeoutMs, what, signal, (scoped) =>
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
   * Calls GetEvictPods and ThresholdMet of all plugins concurrently. A call that fails or exceeds its deadline yields its
   * failure; one that the plugin does not implement yields an empty answer. Throws only the signal's reason.
   */
  async ask(offer: PodOffer, signal: AbortSignal): Promise<PluginAnswers[]> {
    return await Promise.all(
      [...this.#served.values()].map(async (plugin) => {
        const request = () => ({ pods: offer.pods.length, bytes: sentBytes(plugin, offer) });
        const evicting: PluginCall<EvictPodsAnswer> = {
          method: "GetEvictPods",
          request,
          nothing: noPods,
          work: (scoped) => plugin.calls.getEvictPods(offer, scoped),
        };
        const met: PluginCall<ThresholdAnswer> = {
          method: "ThresholdMet",
          request,
          nothing: notMet,
          work: (scoped) => plugin.calls.thresholdMet(offer, scoped),
        };
        const [evictPods, threshold] = await Promise.all([
          this.#caller.call(plugin, evicting, signal),
          this.#caller.call(plugin, met, signal),
        ]);
        return { plugin: plugin.name, evictPods, threshold };
      }),
    );
  }

  /** Calls GetTopEvictionPods, concurrently. A plugin that is not called no longer reports an earlier failure of it. */
  async askTop(
    offer: PodOffer,
    questions: readonly TopQuestion[],
    signal: AbortSignal,
  ): Promise<{ plugin: string; top: Answered<TopAnswer> }[]> {
    const asked = new Set(questions.map(({ plugin }) => plugin));
    for (const { name, errors } of this.#served.values()) {
      if (!asked.has(name)) errors.delete("GetTopEvictionPods");
    }
    return await Promise.all(
      questions.map(async (question) => {
        const plugin = this.#served.get(question.plugin);
        if (!plugin) return { plugin: question.plugin, top: { failure: "the plugin disconnected" } };
        const { scope, topN, candidateUids } = question;
        const call: PluginCall<TopAnswer> = {
          method: "GetTopEvictionPods",
          request: () => ({ scope, topN, pods: candidateUids?.length ?? offer.pods.length }),
          nothing: noTopPods,
          work: (scoped) => plugin.calls.getTopEvictionPods(offer, question, scoped),
        };
        return { plugin: plugin.name, top: await this.#caller.call(plugin, call, signal) };
      }),
    );
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

function sentBytes({ registration }: ServedPlugin, offer: PodOffer): number | undefined {
  return registration && offer.encodedBytes;
}
