import type { Answered, PluginAnswers, TopAnswer, TopAnswers, TopQuestion } from "@nodekeeper/api/decide";
import type { PluginMethod } from "../metrics.ts";
import { noPods, noTopPods, notMet } from "./empty-answers.ts";
import { departureOf, type PluginCaller } from "./plugin-caller.ts";
import type { PodOffer } from "./pod-offer.ts";
import type { ServedPlugin } from "./served-plugin.ts";

export interface PluginRoundOptions {
  /** The plugins registered at the start of the round. */
  plugins: Iterable<ServedPlugin>;
  caller: PluginCaller;
  /** The deadline of a call, milliseconds. */
  timeoutMs: number;
  onEnd: () => void;
}

/**
 * The plugins of one round: those registered when it started. Dispose of it at the end of the round.
 *
 * 1. All calls of the round use these instances, even if others register meanwhile. An in-tree plugin that is replaced,
 *    for example because a policy file changed, is called until the end of the round.
 * 2. If the registration of an instance behind a socket ends, the instance counts as failed in this round, including
 *    its earlier answers.
 * 3. The calls to one plugin are sequential, as in katalyst-core `pkg/agent/evictionmanager/manager.go`: GetEvictPods,
 *    ThresholdMet, GetTopEvictionPods. Different plugins are called concurrently.
 */
export class PluginRound implements Disposable {
  readonly #options: PluginRoundOptions;
  readonly #plugins: ReadonlyMap<string, ServedPlugin>;

  constructor(options: PluginRoundOptions) {
    this.#options = options;
    this.#plugins = new Map([...options.plugins].map((plugin) => [plugin.name, plugin]));
  }

  /**
   * Calls GetEvictPods and ThresholdMet of all plugins. A call that fails or exceeds its deadline yields its failure; a
   * call that the plugin does not implement yields an empty answer. Throws only the signal's reason.
   */
  async ask(offer: PodOffer, signal: AbortSignal): Promise<PluginAnswers[]> {
    const { caller, timeoutMs } = this.#options;
    return await Promise.all(
      [...this.#plugins.values()].map(async (plugin) => {
        const bytes = () => (plugin.registration ? offer.encodedBytes : undefined);
        const request = () => ({ pods: offer.pods.length, bytes: bytes() });
        const { calls } = plugin;
        const call = <T extends object>(
          method: PluginMethod,
          nothing: T,
          work: (scoped: AbortSignal) => Promise<T>,
        ) => caller.call(plugin, { method, request, nothing, work }, timeoutMs, signal);
        const evictPods = await call("GetEvictPods", noPods, (scoped) => calls.getEvictPods(offer, scoped));
        const threshold = await call("ThresholdMet", notMet, (scoped) => calls.thresholdMet(offer, scoped));
        return { plugin: plugin.name, evictPods, threshold };
      }),
    );
  }

  /** Calls GetTopEvictionPods. Clears the earlier failure of this call for plugins that are not called. */
  async askTop(
    offer: PodOffer,
    questions: readonly TopQuestion[],
    signal: AbortSignal,
  ): Promise<TopAnswers[]> {
    const asked = new Set(questions.map(({ plugin }) => plugin));
    for (const { name, errors } of this.#plugins.values()) {
      if (!asked.has(name)) errors.delete("GetTopEvictionPods");
    }
    const { caller, timeoutMs } = this.#options;
    return await Promise.all(
      questions.map(async (question): Promise<TopAnswers> => {
        const plugin = this.#plugins.get(question.plugin);
        if (!plugin) return { plugin: question.plugin, top: { failure: "not registered" } };
        const { scope, topN, candidateUids } = question;
        const top = await caller.call<TopAnswer>(
          plugin,
          {
            method: "GetTopEvictionPods",
            request: () => ({ scope, topN, pods: candidateUids?.length ?? offer.pods.length }),
            nothing: noTopPods,
            work: (scoped) => plugin.calls.getTopEvictionPods(offer, question, scoped),
          },
          timeoutMs,
          signal,
        );
        return { plugin: plugin.name, top };
      }),
    );
  }

  /** Whether the registration of any instance has ended since the start of the round. */
  get hasLost(): boolean {
    return [...this.#plugins.values()].some(({ scope }) => scope.signal.aborted);
  }

  /**
   * Returns the answers. Those of instances whose registration has ended since the start of the round count as
   * failures.
   */
  current(answers: readonly PluginAnswers[]): PluginAnswers[] {
    return answers.map(({ plugin, evictPods, threshold }) => ({
      plugin,
      evictPods: this.#counted(plugin, evictPods),
      threshold: this.#counted(plugin, threshold),
    }));
  }

  /** Like `current`, for answers to GetTopEvictionPods. */
  currentTops(answers: readonly TopAnswers[]): TopAnswers[] {
    return answers.map(({ plugin, top }) => ({ plugin, top: this.#counted(plugin, top) }));
  }

  [Symbol.dispose](): void {
    this.#options.onEnd();
  }

  #counted<T>(name: string, answered: Answered<T>): Answered<T> {
    const plugin = this.#plugins.get(name);
    if (!plugin?.scope.signal.aborted || "failure" in answered) return answered;
    return { failure: departureOf(plugin) };
  }
}
