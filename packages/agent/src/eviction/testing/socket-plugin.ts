import {
  type Condition,
  type DeepPartial,
  EvictionPluginDefinition,
  type EvictionPluginServiceImplementation,
  type GetEvictPodsRequest,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { createServer, type Server } from "nice-grpc";
import type { PluginRegistration } from "../../plugins/index.ts";

export type PluginService = Partial<EvictionPluginServiceImplementation>;

/** Returns a pod as a plugin names it. */
export function podBytes(uid: string, name = uid, namespace = "default"): Uint8Array {
  return Pod.encode(Pod.fromPartial({ metadata: { uid, name, namespace } })).finish();
}

/** Returns the names of the pods offered to a plugin. */
export function offeredNames({ activePods }: GetEvictPodsRequest): string[] {
  return activePods.map((bytes) => Pod.decode(bytes).metadata?.name ?? "");
}

export function metCondition(conditionName: string): DeepPartial<Condition> {
  return { conditionName, effects: ["NoSchedule"], metCondition: true };
}

/** Serves an eviction plugin on a socket. Calls that are not set have empty answers. */
export async function servePlugin(socket: string, service: PluginService = {}): Promise<Server> {
  const server = createServer({ "grpc.max_receive_message_length": -1 });
  server.add(EvictionPluginDefinition, {
    getToken: async () => ({}),
    thresholdMet: async () => ({}),
    getTopEvictionPods: async () => ({}),
    getEvictPods: async () => ({}),
    ...service,
  });
  await server.listen(`unix:${socket}`);
  return server;
}

export function registrationOf(name: string, endpoint: string, generation = 1): PluginRegistration {
  const registrationSocket = `${endpoint}.registration`;
  const versions = ["v1alpha1"];
  return { type: "EvictionPlugin", name, endpoint, registrationSocket, versions, uid: 0, generation };
}
