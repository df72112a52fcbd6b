import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { ReporterPluginDefinition } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { Server } from "nice-grpc";

const passThrough = (bytes: Uint8Array) => bytes;

function method<Stream extends boolean>(name: string, responseStream: Stream) {
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

const definition = {
  getReportContent: method("GetReportContent", false),
  listAndWatchReportContent: method("ListAndWatchReportContent", true),
};

/** Adds a reporter plugin to a server whose messages are ready made, so that making them is not measured. */
export function rawReporter(server: Server, name: string, messages: () => AsyncIterable<Uint8Array>): void {
  server.add(RegistrationDefinition, {
    getInfo: async () => ({ type: "ReporterPlugin", name, endpoint: "", supportedVersions: ["v1alpha1"] }),
    notifyRegistrationStatus: async () => ({}),
  });
  server.add(definition, {
    // Never answers: the stream has everything.
    getReportContent: () => new Promise<Uint8Array>(() => {}),
    listAndWatchReportContent: () => messages(),
  });
}
