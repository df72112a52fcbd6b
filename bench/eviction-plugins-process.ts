// Eviction plugins for the benchmark, in a process of their own:
//   node eviction-plugins-process.ts DIRECTORY COUNT
// Each serves DIRECTORY/plugin-N.sock and is under hard pressure: it is asked for a top pod each round, and names none.
// Requests are not decoded, so that the benchmark measures the calls and not the work of the plugins.

import {
  EvictionPluginDefinition,
  ThresholdMetResponse,
  ThresholdMetType,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { createServer } from "nice-grpc";

const [directory = "", count = "0"] = process.argv.slice(2);
const passThrough = (bytes: Uint8Array) => bytes;
const met = ThresholdMetResponse.encode(
  ThresholdMetResponse.fromPartial({ metType: ThresholdMetType.HARD_MET, evictionScope: "memory" }),
).finish();
const nothing = new Uint8Array();

const service = {
  getToken: method("GetToken"),
  thresholdMet: method("ThresholdMet"),
  getTopEvictionPods: method("GetTopEvictionPods"),
  getEvictPods: method("GetEvictPods"),
} as const;

for (let at = 0; at < Number(count); at++) {
  const server = createServer({ "grpc.max_receive_message_length": -1 });
  server.add(service, {
    getToken: async () => nothing,
    thresholdMet: async () => met,
    getTopEvictionPods: async () => nothing,
    getEvictPods: async () => nothing,
  });
  server.add(RegistrationDefinition, {
    getInfo: async () => ({
      type: "EvictionPlugin",
      name: `plugin-${at}`,
      endpoint: "",
      supportedVersions: ["v1alpha1"],
    }),
    notifyRegistrationStatus: async () => ({}),
  });
  await server.listen(`unix:${directory}/plugin-${at}.sock`);
}
process.stdout.write("ready\n");

function method(name: string) {
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
