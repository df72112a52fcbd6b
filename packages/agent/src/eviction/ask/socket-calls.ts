import { EvictionAnswerRefused } from "@nodekeeper/api/errors";
import {
  EvictionPluginDefinition,
  GetEvictPodsResponse,
  GetTokenResponse,
  GetTopEvictionPodsResponse,
  ThresholdMetResponse,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import {
  RoundRequest,
  RoundRequestsDefinition,
} from "@nodekeeper/core/gen/nodekeeper/eviction/v1alpha1/api.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { answerShapes, checkAnswerSize, checkAnswerText } from "./answer-size.ts";
import { LONGEST_REASON, readEvictPods, readThreshold, readTop } from "./read-answers.ts";
import type { EvictionPluginCalls } from "./source.ts";

// Complete pods in an answer are allowed, up to a few thousand.
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** The calls to a plugin behind a socket: those of rounds, and GetToken at registration. */
export interface SocketCalls extends EvictionPluginCalls {
  getToken(signal: AbortSignal): Promise<string>;
}

/** Calls a plugin that serves evictionplugin.v1alpha1 on a unix socket. One connection is used until `close`. */
export function socketCalls(endpoint: string): SocketCalls {
  const channel = new UnaryChannel(endpoint, { maxReceiveBytes: MAX_ANSWER_BYTES });
  const pathOf = (method: string) => `${EvictionPluginDefinition.fullName}/${method}`;
  const ask = (method: string, request: readonly Uint8Array[], signal: AbortSignal) =>
    channel.call(pathOf(method), request, signal);
  return {
    lacks: (method) => channel.isUnimplemented(pathOf(method)),
    async getToken(signal) {
      return decoded(GetTokenResponse, await ask("GetToken", [], signal)).token;
    },
    async getEvictPods(offer, signal) {
      const answer = await ask("GetEvictPods", [offer.bytes], signal);
      checkAnswerSize(answer, answerShapes.getEvictPods);
      const read = readEvictPods(decoded(GetEvictPodsResponse, answer));
      checkAnswerText(read.pods.map(({ pod, reason }) => ({ ...pod, reason })));
      return read;
    },
    async thresholdMet(offer, signal) {
      const answer = await ask("ThresholdMet", [offer.bytes], signal);
      checkAnswerSize(answer, answerShapes.thresholdMet);
      return readThreshold(decoded(ThresholdMetResponse, answer));
    },
    async getTopEvictionPods(offer, question, signal) {
      const answer = await ask("GetTopEvictionPods", offer.topRequest(question), signal);
      checkAnswerSize(answer, answerShapes.getTopEvictionPods);
      const read = readTop(decoded(GetTopEvictionPodsResponse, answer));
      checkAnswerText(read.pods);
      return read;
    },
    async waitForRequest(signal) {
      const method = `${RoundRequestsDefinition.fullName}/WaitForRequest`;
      const { reason } = decoded(RoundRequest, await channel.call(method, [], signal));
      return reason.slice(0, LONGEST_REASON);
    },
    close: () => channel.close(),
  };
}

function decoded<T>(message: { decode(bytes: Uint8Array): T }, bytes: Uint8Array): T {
  try {
    return message.decode(bytes);
  } catch (error) {
    throw new EvictionAnswerRefused({ problem: "the answer can't be decoded" }, { cause: error });
  }
}
