import {
  type GetReportContentResponse,
  ReporterPluginDefinition,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { dialUnix, fromGrpcError } from "@nodekeeper/core/grpc";
import { createClient } from "nice-grpc";
import type { ReportMessage } from "./report-message.ts";

/** An in-tree reporter plugin. It has the same methods as reporterplugin.v1alpha1. */
export interface ReporterSource {
  readonly name: string;
  /** Whether its content is not restored after a restart of the agent. Default false. */
  readonly startsEmpty?: boolean;
  /** Returns the plugin's current content. The signal aborts at the caller's deadline. */
  getReportContent(signal: AbortSignal): Promise<GetReportContentResponse>;
  /** Yields the content immediately and after each change, until the signal aborts. */
  listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse>;
}

/** The calls that the collector makes to a plugin. */
export interface ContentSource {
  get(signal: AbortSignal): Promise<ReportMessage>;
  watch(signal: AbortSignal): AsyncIterable<ReportMessage>;
  close(): void;
}

/** Returns the source of an in-tree plugin. */
export function inTreeSource(reporter: ReporterSource): ContentSource {
  return {
    get: (signal) => reporter.getReportContent(signal),
    watch: (signal) => reporter.listAndWatch(signal),
    close: () => {},
  };
}

/** Returns the source of a plugin that serves reporterplugin.v1alpha1 on a unix socket. */
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

// Service definition with raw messages.
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
