import type { HostSample } from "../../host/index.ts";
import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer } from "../decide/answers.ts";
import type { TopQuestion } from "../decide/decision.ts";
import type { ObservedPod } from "../observe/observed-pod.ts";
import type { PluginMethod } from "../round-metrics.ts";
import type { PodOffer } from "./pod-offer.ts";

/**
 * An in-tree eviction plugin. It receives the same calls as a plugin behind a socket, with all candidates of the round not
 * encoded; `details` has the fields of a pod that `pod` leaves out. The signal carries the caller's deadline.
 */
export interface EvictionSource {
  readonly name: string;
  /** Pods to evict, independent of the threshold. */
  getEvictPods(pods: readonly ObservedPod[], signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer>;
  /** Called while the threshold is confirmed. The pods are the candidates that the plugin requested to be offered. */
  getTopEvictionPods(
    pods: readonly ObservedPod[],
    question: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer>;
  /**
   * The plugin's thresholds that a sample crosses, by names of its choice: "free memory". Called several times per second
   * between rounds; a threshold that the previous sample did not cross starts a round out of turn. Must be cheap and
   * synchronous. Absent: the plugin starts no rounds.
   */
  crossed?(sample: HostSample): readonly string[];
  /** Called when the plugin is removed, as when its policy file changes: removes its metric series. */
  close?(): void;
}

/** The calls to a plugin, in-tree or behind a socket. */
export interface EvictionPluginCalls {
  getEvictPods(offer: PodOffer, signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(offer: PodOffer, signal: AbortSignal): Promise<ThresholdAnswer>;
  getTopEvictionPods(offer: PodOffer, question: TopQuestion, signal: AbortSignal): Promise<TopAnswer>;
  /**
   * Whether the plugin has returned UNIMPLEMENTED to the call over the connection that the next call would use. Absent: it
   * implements all calls.
   */
  lacks?(method: PluginMethod): boolean;
  /** As in `EvictionSource`. */
  crossed?(sample: HostSample): readonly string[];
  /** Resolves with the reason when the plugin requests a round. Throws `unsupported` where the plugin lacks the call. */
  waitForRequest?(signal: AbortSignal): Promise<string>;
  close(): void;
}

/** The calls to an in-tree plugin. */
export function inTreeCalls(source: EvictionSource): EvictionPluginCalls {
  return {
    getEvictPods: (offer, signal) => source.getEvictPods(offer.pods, signal),
    thresholdMet: (offer, signal) => source.thresholdMet(offer.pods, signal),
    getTopEvictionPods: (offer, question, signal) =>
      source.getTopEvictionPods(offer.podsFor(question), question, signal),
    ...(source.crossed ? { crossed: (sample) => source.crossed!(sample) } : {}),
    close: () => source.close?.(),
  };
}
