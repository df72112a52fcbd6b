import { createClient } from "nice-grpc";
import {
  EvictionPluginDefinition,
  GetEvictPodsResponse,
  GetTokenResponse,
  GetTopEvictionPodsResponse,
  ThresholdMetResponse,
} from "../gen/evictionplugin/v1alpha1/api.ts";
import { dialUnix, fromGrpcError } from "../grpc/index.ts";
import { checkAnswerSize } from "./answer-size.ts";
import { readEvictPods, readThreshold, readTop } from "./read-answers.ts";
import type { EvictionPluginCalls } from "./source.ts";

// A plugin may answer with whole pods, of which there are up to a few thousand.
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** A plugin behind a socket: what rounds ask, and the token it registers with. */
export interface SocketCalls extends EvictionPluginCalls {
  getToken(signal: AbortSignal): Promise<string>;
}

/** Asks a plugin that serves evictionplugin.v1alpha1 on a unix socket, over one channel until `close`. */
export function socketCalls(endpoint: string): SocketCalls {
  const channel = dialUnix(endpoint, { maxReceiveBytes: MAX_ANSWER_BYTES });
  const client = createClient(rawEvictionPlugin, channel);
  const ask = async (method: keyof typeof rawEvictionPlugin, request: Buffer, signal: AbortSignal) => {
    try {
      return await client[method](request, { signal });
    } catch (thrown) {
      throw fromGrpcError(thrown);
    }
  };
  return {
    async getToken(signal) {
      return GetTokenResponse.decode(await ask("getToken", EMPTY, signal)).token;
    },
    async getEvictPods(offer, signal) {
      const answer = await ask("getEvictPods", offer.bytes, signal);
      checkAnswerSize(answer, 1);
      return readEvictPods(GetEvictPodsResponse.decode(answer));
    },
    async thresholdMet(offer, signal) {
      const answer = await ask("thresholdMet", offer.bytes, signal);
      checkAnswerSize(answer, 8);
      return readThreshold(ThresholdMetResponse.decode(answer));
    },
    async getTopEvictionPods(offer, question, signal) {
      const answer = await ask("getTopEvictionPods", Buffer.concat(offer.topRequest(question)), signal);
      checkAnswerSize(answer, 1);
      return readTop(GetTopEvictionPodsResponse.decode(answer));
    },
    close: () => channel.close(),
  };
}

const EMPTY = Buffer.alloc(0);
const passThrough = (bytes: Buffer) => bytes;

// The service with its messages left as bytes: the pods in requests are encoded once for all plugins, and answers are
// looked at before they are decoded.
const rawEvictionPlugin = {
  getToken: rawMethod("GetToken"),
  getEvictPods: rawMethod("GetEvictPods"),
  thresholdMet: rawMethod("ThresholdMet"),
  getTopEvictionPods: rawMethod("GetTopEvictionPods"),
} as const;

function rawMethod(name: string) {
  return {
    path: `/${EvictionPluginDefinition.fullName}/${name}`,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: passThrough,
    requestDeserialize: passThrough,
    responseSerialize: passThrough,
    responseDeserialize: passThrough,
    options: {},
  };
}
