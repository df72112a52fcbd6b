import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer, TopQuestion } from "@nodekeeper/api/decide";
import type { HostSample } from "../../host/index.ts";
import type { PluginMethod } from "../metrics.ts";
import type { ObservedPod } from "../observe/observed-pod.ts";
import type { PodOffer } from "./pod-offer.ts";

/**
 * An in-tree eviction plugin. It receives the same calls as a plugin behind a socket, with all candidates of the round
 * as objects. `details` has the fields of a pod that `pod` omits. The signal carries the caller's deadline.
 */
export interface EvictionSource {
  readonly name: string;
  /** Returns pods to evict, independent of the threshold. */
  getEvictPods(pods: readonly ObservedPod[], signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer>;
  /** Called while the threshold is confirmed. `pods` are the candidates that the plugin requested to be offered. */
  getTopEvictionPods(
    pods: readonly ObservedPod[],
    question: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer>;
  /**
   * Returns the plugin's thresholds that a sample crosses, by names of its choice such as "free memory". Called several
   * times per second; a threshold that the previous sample did not cross starts a round out of turn. Must be cheap and
   * synchronous. Undefined if the plugin starts no rounds.
   */
  crossed?(sample: HostSample): readonly string[];
  /**
   * Removes the plugin's metric series. Called when the plugin is removed or replaced, for example because its policy
   * file changed.
   * @param hasSuccessor whether a plugin of the same name replaces it, which continues its series
   */
  close?(hasSuccessor: boolean): void;
}

/** The calls to a plugin, in-tree or behind a socket. */
export interface EvictionPluginCalls {
  getEvictPods(offer: PodOffer, signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(offer: PodOffer, signal: AbortSignal): Promise<ThresholdAnswer>;
  getTopEvictionPods(offer: PodOffer, question: TopQuestion, signal: AbortSignal): Promise<TopAnswer>;
  /**
   * Returns whether the plugin returned UNIMPLEMENTED for the call over the connection that the next call would use.
   * Undefined if the plugin implements all calls.
   */
  lacks?(method: PluginMethod): boolean;
  /** As in `EvictionSource`. */
  crossed?(sample: HostSample): readonly string[];
  /**
   * Resolves with the reason when the plugin requests a round. Throws `unsupported` if the plugin does not implement
   * the call.
   */
  waitForRequest?(signal: AbortSignal): Promise<string>;
  /** As in `EvictionSource`. Closes the channel of a plugin behind a socket. */
  close(hasSuccessor?: boolean): void;
}

/** The calls to an in-tree plugin. */
export function inTreeCalls(source: EvictionSource): EvictionPluginCalls {
  return {
    getEvictPods: (offer, signal) => source.getEvictPods(offer.pods, signal),
    thresholdMet: (offer, signal) => source.thresholdMet(offer.pods, signal),
    getTopEvictionPods: (offer, question, signal) =>
      source.getTopEvictionPods(offer.podsFor(question), question, signal),
    ...(source.crossed ? { crossed: (sample) => source.crossed!(sample) } : {}),
    close: (hasSuccessor = false) => source.close?.(hasSuccessor),
  };
}
