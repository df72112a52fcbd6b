import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { type PluginInfo, RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { FieldType, ReporterPluginDefinition } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import {
  customNodeResource,
  type ReportContent,
  type ReporterPlugin,
  serveReporterPlugin,
  status,
} from "@nodekeeper/sdk";
import { createServer, type Server, type ServiceImplementation } from "nice-grpc";

const customNodeResourceKind = {
  group: "node.katalyst.kubewharf.io",
  version: "v1alpha1",
  kind: "CustomNodeResource",
};

/** Content that names one widget resource, so that each plugin's value can be told apart in the CNR. */
export function widgets(name: string, value: number | string): ReportContent {
  return customNodeResource(
    status("resources", { capacity: { [`widgets.example/${name}`]: String(value) } }),
  );
}

/** A CNR field with bytes of any kind as its value. */
export function rawField(
  fieldName: string,
  value: string | Uint8Array,
  fieldType: FieldType = FieldType.Status,
) {
  const field = { fieldType, fieldName, value: Buffer.from(value) };
  return { groupVersionKind: customNodeResourceKind, field: [field] };
}

/** A well-behaved plugin of the SDK. */
export interface GoodPlugin extends ReporterPlugin {
  /** Reports this from now on. */
  say(...contents: ReportContent[]): void;
}

export async function startGoodPlugin(
  socketDir: string,
  name: string,
  ...first: ReportContent[]
): Promise<GoodPlugin> {
  const changes = new EventEmitter();
  let current = first;
  const plugin = serveReporterPlugin({
    name,
    socketDir,
    async *report(signal) {
      for (let said: ReportContent[] | undefined; ; ) {
        if (said === current) await once(changes, "change", { signal });
        said = current;
        yield said;
      }
    },
  });
  await plugin.ready;
  return Object.assign(plugin, {
    say(...contents: ReportContent[]) {
      current = contents;
      changes.emit("change");
    },
  });
}

/** A plugin on a bare gRPC server, which answers what a test makes it answer. */
export interface BarePlugin {
  socketPath: string;
  /** What the agent told it of its registration. */
  notices: { pluginRegistered: boolean; error: string }[];
  /** Ends at once, as a crash does, and leaves its socket file to the system. */
  stop(): void;
}

/** Serves the registration and the reporter's calls. `info` overrides what GetInfo says. */
export async function startBarePlugin(
  socketDir: string,
  name: string,
  service: ServiceImplementation<typeof ReporterPluginDefinition>,
  info: Partial<PluginInfo> = {},
): Promise<BarePlugin> {
  const server = createServer({ "grpc.max_send_message_length": -1 });
  server.add(ReporterPluginDefinition, service);
  return await register(server, socketDir, name, info);
}

/** A plugin that answers GetReportContent with any bytes, and has no stream. */
export interface BytesPlugin extends BarePlugin {
  say(bytes: Uint8Array): void;
}

export async function startBytesPlugin(socketDir: string, name: string): Promise<BytesPlugin> {
  const server = createServer();
  let bytes = new Uint8Array();
  const asIs = (given: Uint8Array) => given;
  const getReportContent = {
    path: `/${ReporterPluginDefinition.fullName}/GetReportContent`,
    requestStream: false,
    responseStream: false,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
    options: {},
  } as const;
  server.add({ getReportContent }, { getReportContent: async () => bytes });
  const plugin = await register(server, socketDir, name, {});
  return { ...plugin, say: (given) => (bytes = Uint8Array.from(given)) };
}

async function register(
  server: Server,
  socketDir: string,
  name: string,
  info: Partial<PluginInfo>,
): Promise<BarePlugin> {
  const notices: BarePlugin["notices"] = [];
  const socketPath = join(socketDir, `${name}.sock`);
  server.add(RegistrationDefinition, {
    getInfo: async () => ({
      type: "ReporterPlugin",
      name,
      endpoint: "",
      supportedVersions: ["v1alpha1"],
      ...info,
    }),
    notifyRegistrationStatus: async (notice) => {
      notices.push(notice);
      return {};
    },
  });
  await server.listen(`unix:${socketPath}`);
  return { socketPath, notices, stop: () => server.forceShutdown() };
}

/** Serves the same content to both calls; the stream stays open. */
export function constantly(
  ...content: ReportContent[]
): ServiceImplementation<typeof ReporterPluginDefinition> {
  return {
    getReportContent: async () => ({ content }),
    async *listAndWatchReportContent(_, { signal }) {
      yield { content };
      await aborted(signal);
    },
  };
}

/** Resolves when the caller has hung up. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
