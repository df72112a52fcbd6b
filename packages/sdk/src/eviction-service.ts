import type { EvictionPluginServiceImplementation } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { abortable, type Logger, messageOf } from "@nodekeeper/core/lib";
import { type CallContext, ServerError, Status } from "nice-grpc";
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
import { stopping } from "./services.ts";

/** What is known about one question of the agent. */
export interface EvictionCall {
  /** Aborts when the agent no longer waits, or the plugin stops. */
  signal: AbortSignal;
}

/** What the agent asks of `getTopEvictionPods`. */
export interface TopPodsCall extends EvictionCall {
  /** How many pods have a use: 1 for a hard threshold. 0 for a soft one: as many as there are. */
  topN: number;
  /** As `thresholdMet` returned it. */
  scope: string;
  /**
   * Candidates that are not among the pods because they can't be evicted now, with the disruption budget that forbade
   * it, and those whose owner has lost pods lately.
   */
  records: readonly EvictionRecord[];
}

type Maybe<T> = T | undefined | Promise<T | undefined>;

/** What an eviction plugin answers. What is left out, or returns undefined, requests nothing. */
export interface EvictionAnswers {
  /** Asked once a round. Not met when left out. */
  thresholdMet?(pods: readonly ActivePod[], call: EvictionCall): Maybe<ThresholdState>;
  /** Asked when the threshold has been met for its grace period; names the pods that go for it, the first one first. */
  getTopEvictionPods?(pods: readonly ActivePod[], call: TopPodsCall): Maybe<TopPods | readonly NamedPod[]>;
  /** Asked once a round: pods that should go, whatever the threshold. */
  getEvictPods?(pods: readonly ActivePod[], call: EvictionCall): Maybe<PodsToEvict | readonly PodToEvict[]>;
  /**
   * The token of the plugin's service account, for agents that ask for one. Tokens expire, so a function is asked
   * again at each registration. Default: none.
   */
  token?: string | (() => string | Promise<string>);
}

/**
 * Answers the agent from the author's functions. One that throws fails that call with its message, and the agent goes
 * on without the answer. Calls end when `stop` aborts.
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
      throw new ServerError(Status.INTERNAL, messageOf(error));
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
