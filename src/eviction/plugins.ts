import {
  type Clock,
  childScope,
  codeOf,
  type HealthCheck,
  type Logger,
  messageOf,
  NodekeeperError,
  stopped,
  withDeadline,
} from "../lib/index.ts";
import type { PluginHandler, PluginRegistration } from "../plugins/index.ts";
import type { Answered, EvictPodsAnswer, PluginAnswers, ThresholdAnswer, TopAnswer } from "./answers.ts";
import type { TopQuestion } from "./decision.ts";
import type { PodOffer } from "./pod-offer.ts";
import { type EvictionRoundMetrics, forgetPlugin, type PluginMethod } from "./round-metrics.ts";
import type { EvictionSettings } from "./round-settings.ts";
import { type EvictionPluginStatus, newServedPlugin, type ServedPlugin, statusOf } from "./served-plugin.ts";
import { socketCalls } from "./socket-calls.ts";
import { type EvictionSource, inTreeCalls } from "./source.ts";
import type { TokenCheck } from "./token-check.ts";

const VERSIONS = ["v1alpha1"];
// A plugin that let a deadline pass gets this long, milliseconds, until it answers or the suspicion ends: one that
// hangs must not hold up every round.
const SUSPECT_MS = 500;
const SUSPICION_LASTS_MS = 60_000;

export interface EvictionPluginsOptions {
  inTree: readonly EvictionSource[];
  settings: () => Pick<EvictionSettings, "callTimeoutMs" | "syncPeriodMs">;
  /** How a plugin proves who it is before it counts; undefined where it need not. */
  tokenCheck: () => TokenCheck | undefined;
  clock: Clock;
  log: Logger;
  metrics: EvictionRoundMetrics;
}

/** The eviction plugins, in-tree and behind sockets, each with its channel for as long as it is registered. */
export class EvictionPlugins implements PluginHandler {
  readonly type = "EvictionPlugin";
  readonly #options: EvictionPluginsOptions;
  readonly #served = new Map<string, ServedPlugin>();
  #isClosed = false;

  constructor(options: EvictionPluginsOptions) {
    this.#options = options;
    for (const source of options.inTree) {
      this.#served.set(source.name, newServedPlugin(source.name, undefined, inTreeCalls(source)));
    }
    options.metrics.plugins.set(this.#served.size);
  }

  /**
   * Puts in-tree plugins in the place of others, for those that are made of files: asked from the next round on.
   * Throws `conflict` for a name that another plugin has; nothing is changed then.
   */
  replaceInTree(names: readonly string[], sources: readonly EvictionSource[]): void {
    const taken = sources.find(({ name }) => this.#served.has(name) && !names.includes(name));
    if (taken) throw new NodekeeperError("conflict", `${taken.name} is the name of another eviction plugin`);
    for (const name of names) {
      this.#served.delete(name);
      forgetPlugin(this.#options.metrics, name);
    }
    for (const source of sources) {
      this.#served.set(source.name, newServedPlugin(source.name, undefined, inTreeCalls(source)));
    }
    this.#options.metrics.plugins.set(this.#served.size);
  }

  /** The plugins that are asked now, sorted. */
  get names(): string[] {
    return [...this.#served.keys()].sort();
  }

  validate({ name, versions }: Omit<PluginRegistration, "generation">): void {
    if (this.#inTreeNames().includes(name)) {
      throw new NodekeeperError("conflict", `${name} is the name of an in-tree eviction plugin`);
    }
    if (versions.some((version) => VERSIONS.includes(version))) return;
    const offered = versions.join(", ").slice(0, 200) || "none";
    throw new NodekeeperError(
      "unsupported",
      `supported versions of EvictionPlugin: ${VERSIONS.join(", ")}; the plugin offers ${offered}`,
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
        const token = await withDeadline(clock, this.#timeoutMs, what, signal, (scoped) =>
          calls.getToken(scoped),
        );
        await check(name, token, signal);
      }
      signal.throwIfAborted();
      if (this.#isClosed) throw stopped("eviction has stopped");
    } catch (thrown) {
      calls.close();
      throw thrown;
    }
    this.#stop(name, "replaced by a newer registration");
    this.#served.set(name, newServedPlugin(name, registration, calls));
    this.#options.metrics.plugins.set(this.#served.size);
    log.info({ plugin: name, endpoint }, "eviction plugin registered");
  }

  deregister(registration: PluginRegistration, reason: string): void {
    const { name, generation } = registration;
    if (this.#served.get(name)?.registration?.generation !== generation) return;
    this.#stop(name, reason);
    this.#served.delete(name);
    const { log, metrics } = this.#options;
    metrics.plugins.set(this.#served.size);
    forgetPlugin(metrics, name);
    log.warn(
      { plugin: name, reason },
      "eviction plugin is gone, its conditions stay for their transition period",
    );
  }

  /** Asks all plugins at once what they want; one that fails or is late is told as that. */
  async ask(offer: PodOffer, signal: AbortSignal): Promise<PluginAnswers[]> {
    return await Promise.all(
      [...this.#served.values()].map(async (plugin) => {
        const [evictPods, threshold] = await Promise.all([
          this.#call<EvictPodsAnswer>(plugin, "GetEvictPods", signal, (scoped) =>
            plugin.calls.getEvictPods(offer, scoped),
          ),
          this.#call<ThresholdAnswer>(plugin, "ThresholdMet", signal, (scoped) =>
            plugin.calls.thresholdMet(offer, scoped),
          ),
        ]);
        return { plugin: plugin.name, evictPods, threshold };
      }),
    );
  }

  /** Asks the questions, all at once. */
  async askTop(
    offer: PodOffer,
    questions: readonly TopQuestion[],
    signal: AbortSignal,
  ): Promise<{ plugin: string; top: Answered<TopAnswer> }[]> {
    return await Promise.all(
      questions.map(async (question) => {
        const plugin = this.#served.get(question.plugin);
        if (!plugin) return { plugin: question.plugin, top: { failure: "the plugin is gone" } };
        const top = await this.#call<TopAnswer>(plugin, "GetTopEvictionPods", signal, (scoped) =>
          plugin.calls.getTopEvictionPods(offer, question, scoped),
        );
        return { plugin: plugin.name, top };
      }),
    );
  }

  /** Lets go of every channel, and takes no plugin any more. Call when no round runs. */
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

  /** Fails while a call to any plugin failed in the last round. */
  healthCheck(): HealthCheck {
    return {
      name: "EvictionPluginsReady",
      kind: "ready",
      check: () => {
        const failing = this.status().filter((plugin) => plugin.lastError !== undefined);
        if (failing.length === 0) return { ok: true, message: `${this.#served.size} plugins answer` };
        const texts = failing.map(({ name, lastError }) => `${name}: ${lastError}`);
        return { ok: false, message: texts.join("; ").slice(0, 2_000) };
      },
    };
  }

  #inTreeNames(): string[] {
    return [...this.#served.values()].flatMap(({ name, registration }) => (registration ? [] : [name]));
  }

  #stop(name: string, reason: string): void {
    const plugin = this.#served.get(name);
    plugin?.scope.abort(stopped(reason));
    plugin?.calls.close();
  }

  async #call<T>(
    plugin: ServedPlugin,
    method: PluginMethod,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<Answered<T>> {
    const { clock, metrics } = this.#options;
    const startedAt = clock.monotonic();
    // Ends with the round and with the registration.
    using scope = childScope(signal);
    const onGone = () => scope.abort(plugin.scope.signal.reason);
    plugin.scope.signal.addEventListener("abort", onGone, { once: true });
    try {
      const answer = await withDeadline(clock, this.#patienceWith(plugin), method, scope.signal, work);
      plugin.errors.delete(method);
      plugin.answeredAt = clock.now();
      if (clock.monotonic() - startedAt < SUSPECT_MS) plugin.suspects.delete(method);
      return { answer };
    } catch (thrown) {
      signal.throwIfAborted();
      this.#failed(plugin, method, thrown);
      return { failure: messageOf(thrown).slice(0, 1_000) };
    } finally {
      plugin.scope.signal.removeEventListener("abort", onGone);
      if (!plugin.scope.signal.aborted) {
        const seconds = (clock.monotonic() - startedAt) / 1000;
        metrics.callDuration.observe({ plugin: plugin.name, method }, seconds);
      }
    }
  }

  #patienceWith(plugin: ServedPlugin): number {
    const now = this.#options.clock.monotonic();
    const isSuspect = [...plugin.suspects.values()].some((since) => now - since < SUSPICION_LASTS_MS);
    return isSuspect ? Math.min(SUSPECT_MS, this.#timeoutMs) : this.#timeoutMs;
  }

  // A plugin that takes longer than a period would put off the next round.
  get #timeoutMs(): number {
    const { callTimeoutMs, syncPeriodMs } = this.#options.settings();
    return Math.min(callTimeoutMs, syncPeriodMs);
  }

  #failed(plugin: ServedPlugin, method: PluginMethod, thrown: unknown): void {
    const { clock, log, metrics } = this.#options;
    const code = codeOf(thrown);
    const message = `${method}: ${messageOf(thrown)}`.slice(0, 500);
    if (code === "deadline") {
      const since = plugin.suspects.get(method);
      if (since === undefined || clock.monotonic() - since >= SUSPICION_LASTS_MS) {
        plugin.suspects.set(method, clock.monotonic());
      }
    }
    metrics.callFailures.inc({ plugin: plugin.name, method, code });
    const isNews = !plugin.errors.has(method);
    plugin.errors.set(method, message);
    log[isNews ? "warn" : "debug"]({ err: thrown, plugin: plugin.name, method }, "eviction plugin failed");
  }
}
