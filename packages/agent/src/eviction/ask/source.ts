import type { HostSample } from "../../host/index.ts";
import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer } from "../decide/answers.ts";
import type { TopQuestion } from "../decide/decision.ts";
import type { ObservedPod } from "../observe/observed-pod.ts";
import type { PodOffer } from "./pod-offer.ts";

/**
 * An eviction plugin that runs inside the agent. It sees the same calls as one behind a socket: all candidates of the
 * round, not encoded; their `details` hold what `pod` leaves out. The caller sets deadlines by the signal.
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
  /**
   * The plugin's thresholds that are crossed by what was sampled just now, by names of its choice: "free memory". Asked
   * several times a second between rounds; one that was not crossed by the sample before starts a round out of turn.
   * Must be cheap and must not wait. Absent: none ever is.
   */
  crossed?(sample: HostSample): readonly string[];
  /** The plugin was removed, as a policy that its file no longer has: it removes the series of its metrics. */
  close?(): void;
}

/** A plugin as a round asks it, wherever it runs. */
export interface EvictionPluginCalls {
  getEvictPods(offer: PodOffer, signal: AbortSignal): Promise<EvictPodsAnswer>;
  thresholdMet(offer: PodOffer, signal: AbortSignal): Promise<ThresholdAnswer>;
  getTopEvictionPods(offer: PodOffer, question: TopQuestion, signal: AbortSignal): Promise<TopAnswer>;
  /** As of `EvictionSource`. */
  crossed?(sample: HostSample): readonly string[];
  /** Resolves with the reason when the plugin requests a round; throws `unsupported` where it never does. */
  waitForRequest?(signal: AbortSignal): Promise<string>;
  close(): void;
}

/** Asks an in-tree plugin. */
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
