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
import { NodekeeperError } from "@nodekeeper/core/lib";
import { checkAnswerSize, checkAnswerText } from "./answer-size.ts";
import { LONGEST_REASON, readEvictPods, readThreshold, readTop } from "./read-answers.ts";
import type { EvictionPluginCalls } from "./source.ts";

// A plugin may answer with complete pods, up to a few thousand.
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** The calls to a plugin behind a socket: those of rounds, and GetToken at registration. */
export interface SocketCalls extends EvictionPluginCalls {
  getToken(signal: AbortSignal): Promise<string>;
}

/** Calls a plugin that serves evictionplugin.v1alpha1 on a unix socket, over one connection until `close`. */
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
      checkAnswerSize(answer, 1);
      const read = readEvictPods(decoded(GetEvictPodsResponse, answer));
      checkAnswerText(read.pods.map(({ pod, reason }) => ({ ...pod, reason })));
      return read;
    },
    async thresholdMet(offer, signal) {
      const answer = await ask("ThresholdMet", [offer.bytes], signal);
      checkAnswerSize(answer, 8);
      return readThreshold(decoded(ThresholdMetResponse, answer));
    },
    async getTopEvictionPods(offer, question, signal) {
      const answer = await ask("GetTopEvictionPods", offer.topRequest(question), signal);
      checkAnswerSize(answer, 1);
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
    throw new NodekeeperError("invalid", "the answer can't be decoded", { id: "NK1604", cause: error });
  }
}
