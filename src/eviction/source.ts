import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer } from "./answers.ts";
import type { TopQuestion } from "./decision.ts";
import type { ObservedPod } from "./pod-bytes.ts";
import type { PodOffer } from "./pod-offer.ts";

/**
 * An eviction plugin that runs inside the agent. It sees the same calls as one behind a socket: all candidates of the
 * round, decoded; their `bytes` hold the whole pod for what `pod` leaves out. The caller sets deadlines by the signal.
 */
export interface EvictionSource {
  readonly name: string;
  /** Pods that should go, whatever the threshold. */
  getEvictPods(pods: readonly ObservedPod[], signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer>;
  /** Asked once the threshold has been met for its grace period; the pods are those the plugin asked to be offered. */
  getTopEvictionPods(
    pods: readonly ObservedPod[],
    question: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer>;
}

/** A plugin as a round asks it, wherever it runs. */
export interface EvictionPluginCalls {
  getEvictPods(offer: PodOffer, signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(offer: PodOffer, signal: AbortSignal): Promise<ThresholdAnswer>;
  getTopEvictionPods(offer: PodOffer, question: TopQuestion, signal: AbortSignal): Promise<TopAnswer>;
  close(): void;
}

/** Asks an in-tree plugin. */
export function inTreeCalls(source: EvictionSource): EvictionPluginCalls {
  return {
    getEvictPods: (offer, signal) => source.getEvictPods(offer.pods, signal),
    thresholdMet: (offer, signal) => source.thresholdMet(offer.pods, signal),
    getTopEvictionPods: (offer, question, signal) =>
      source.getTopEvictionPods(offer.podsFor(question), question, signal),
    close: () => {},
  };
}
