import type { EvictionPluginServiceImplementation } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { abortable, type Logger } from "@nodekeeper/core/lib";
import type { CallContext } from "nice-grpc";
import { ActivePod } from "./active-pod.ts";
import {
  evictPodsMessage,
  type NamedPod,
  type PodsToEvict,
  type PodToEvict,
  type ThresholdState,
  type TopPods,
  thresholdMessage,
  topMessage,
} from "./eviction-answers.ts";
import { type EvictionRecord, readRecord } from "./eviction-record.ts";
import { authorFailure, stopping } from "./services.ts";

/** Context of one call by the agent. */
export interface EvictionCall {
  /** Aborts when the agent no longer waits, or the plugin stops. */
  signal: AbortSignal;
}

/** Context of a `getTopEvictionPods` call. */
export interface TopPodsCall extends EvictionCall {
  /** Maximum number of pods: 1 for a hard threshold; 0, which means no limit, for a soft one. */
  topN: number;
  /** The scope that `thresholdMet` returned. */
  scope: string;
  /**
   * Candidates that are not among the pods because they can't be evicted now, with the disruption budget that forbids
   * it; and pods whose owner recently lost pods.
   */
  records: readonly EvictionRecord[];
}

type Maybe<T> = T | undefined | Promise<T | undefined>;

/** The functions of an eviction plugin. One that is omitted or returns undefined requests nothing. */
export interface EvictionAnswers {
  /** Called once per round. If omitted, the threshold is not met. */
  thresholdMet?(pods: readonly ActivePod[], call: EvictionCall): Maybe<ThresholdState>;
  /**
   * Called when the threshold has been met for its grace period. Returns the pods to evict for it, in the order of
   * eviction.
   */
  getTopEvictionPods?(pods: readonly ActivePod[], call: TopPodsCall): Maybe<TopPods | readonly NamedPod[]>;
  /** Called once per round. Returns pods to evict regardless of thresholds. */
  getEvictPods?(pods: readonly ActivePod[], call: EvictionCall): Maybe<PodsToEvict | readonly PodToEvict[]>;
  /**
   * Token of the plugin's service account, for agents that require one. Tokens expire, so a function is called again at
   * each registration. Default: none.
   */
  token?: string | (() => string | Promise<string>);
}

/**
 * Serves the author's functions. A function that throws fails its call with the message, and the agent continues
 * without the answer. Calls end when `stop` aborts.
 */
export function evictionService(
  plugin: string,
  answers: EvictionAnswers,
  stop: AbortSignal,
  log: Logger,
): EvictionPluginServiceImplementation {
  const answering = async <T>(
    method: string,
    context: Pick<CallContext, "signal">,
    answer: (signal: AbortSignal) => T | Promise<T>,
  ): Promise<T> => {
    const signal = AbortSignal.any([context.signal, stop]);
    try {
      return await abortable(Promise.resolve(answer(signal)), signal);
    } catch (error) {
      if (stop.aborted) throw stopping();
      context.signal.throwIfAborted();
      log.error({ err: error, method }, "plugin can't answer");
      throw authorFailure(error);
    }
  };
  return {
    getToken: (_request, context) =>
      answering("token", context, async () => {
        const { token = "" } = answers;
        return { token: typeof token === "string" ? token : await token() };
      }),
    thresholdMet: ({ activePods }, context) =>
      answering("thresholdMet", context, async (signal) =>
        thresholdMessage(await answers.thresholdMet?.(podsOf(activePods), { signal })),
      ),
    getTopEvictionPods: ({ activePods, topN, evictionScope: scope, candidateEvictionRecords }, context) =>
      answering("getTopEvictionPods", context, async (signal) => {
        const records = candidateEvictionRecords.map(readRecord);
        const call = { topN: Number(topN), scope, records, signal };
        return topMessage(await answers.getTopEvictionPods?.(podsOf(activePods), call), call.topN);
      }),
    getEvictPods: ({ activePods }, context) =>
      answering("getEvictPods", context, async (signal) =>
        evictPodsMessage(await answers.getEvictPods?.(podsOf(activePods), { signal }), plugin),
      ),
  };
}

function podsOf(encoded: readonly Uint8Array[]): ActivePod[] {
  return encoded.map((bytes) => new ActivePod(bytes));
}
