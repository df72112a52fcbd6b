import { createClient } from "nice-grpc";
import { GetReportContentResponse, ReporterPluginDefinition } from "../gen/reporterplugin/v1alpha1/api.ts";
import { dialUnix, fromGrpcError } from "../grpc/index.ts";

/** A reporter plugin that runs inside the agent. It sees the same calls as one behind a socket. */
export interface ReporterSource {
  readonly name: string;
  /** All the plugin has to say now. The caller sets a deadline by the signal. */
  getReportContent(signal: AbortSignal): Promise<GetReportContentResponse>;
  /** The content at once, then each time it changes, until the signal aborts. */
  listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse>;
}

/** A plugin as the collector reads it: its messages undecoded, since most repeat the one before. */
export interface ContentSource {
  get(signal: AbortSignal): Promise<Uint8Array>;
  watch(signal: AbortSignal): AsyncIterable<Uint8Array>;
  close(): void;
}

/** Reads an in-tree plugin. */
export function inTreeSource(reporter: ReporterSource): ContentSource {
  const encode = (response: GetReportContentResponse) => GetReportContentResponse.encode(response).finish();
  return {
    get: async (signal) => encode(await reporter.getReportContent(signal)),
    async *watch(signal) {
      for await (const response of reporter.listAndWatch(signal)) yield encode(response);
    },
    close: () => {},
  };
}

/** Reads a plugin that serves reporterplugin.v1alpha1 on a unix socket. */
export function socketSource(endpoint: string, maxContentBytes: number): ContentSource {
  const channel = dialUnix(endpoint, { maxReceiveBytes: maxContentBytes });
  const client = createClient(rawReporterPlugin, channel);
  return {
    async get(signal) {
      try {
        return await client.getReportContent(EMPTY, { signal });
      } catch (error) {
        throw fromGrpcError(error);
      }
    },
    async *watch(signal) {
      try {
        yield* client.listAndWatchReportContent(EMPTY, { signal });
      } catch (error) {
        throw fromGrpcError(error);
      }
    },
    close: () => channel.close(),
  };
}

const EMPTY = new Uint8Array();
const passThrough = (bytes: Uint8Array) => bytes;

// The service with its messages left as bytes.
const rawReporterPlugin = {
  getReportContent: rawMethod("GetReportContent", false),
  listAndWatchReportContent: rawMethod("ListAndWatchReportContent", true),
} as const;

function rawMethod<Stream extends boolean>(name: string, responseStream: Stream) {
  return {
    path: `/${ReporterPluginDefinition.fullName}/${name}`,
    requestStream: false as const,
    responseStream,
    requestSerialize: passThrough,
    requestDeserialize: passThrough,
    responseSerialize: passThrough,
    responseDeserialize: passThrough,
    options: {},
  };
}
