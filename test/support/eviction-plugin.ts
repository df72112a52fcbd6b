import { join } from "node:path";
import {
  type DeepPartial,
  EvictionPluginDefinition,
  type EvictionRecord,
  type GetEvictPodsResponse,
  type GetTopEvictionPodsResponse,
  type ThresholdMetResponse,
  ThresholdMetType,
  ThresholdOperator,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { until } from "@nodekeeper/testing/until";
import { createServer, type Server } from "nice-grpc";

/** An answer of a plugin, at once or later. */
type Answer<Response> = DeepPartial<Response> | Promise<DeepPartial<Response>>;

/** An eviction plugin on a real socket that says what a test tells it to. */
export interface TestEvictionPlugin {
  /** What it answers to ThresholdMet. */
  threshold: DeepPartial<ThresholdMetResponse>;
  /** What it answers to GetTopEvictionPods; `offered` are the pods' names. */
  top: (offered: string[], pods: Uint8Array[]) => Answer<GetTopEvictionPodsResponse>;
  /** What it answers to GetEvictPods. */
  evictPods: (offered: string[], pods: Uint8Array[]) => Answer<GetEvictPodsResponse>;
  /** What GetTopEvictionPods was asked, oldest first. */
  topRequests: { offered: string[]; topN: number; records: EvictionRecord[] }[];
  token: string;
  /** Rounds that asked it so far. */
  rounds: number;
  /** What the agent said of its registration last. */
  registered: boolean | undefined;
  refusal: string;
  stop(): Promise<void>;
}

/** A hard threshold that is met. */
export const hardPressure: DeepPartial<ThresholdMetResponse> = {
  metType: ThresholdMetType.HARD_MET,
  thresholdOperator: ThresholdOperator.GREATER_THAN,
  thresholdValue: 0.8,
  observedValue: 0.93,
  evictionScope: "memory",
};

/** The pods with these names among those offered, in the order of the names. */
export function pick(names: readonly string[]) {
  return (offered: string[], pods: Uint8Array[]) => ({
    targetPods: names.flatMap((name) => {
      const at = offered.indexOf(name);
      return at < 0 ? [] : [pods[at]!];
    }),
  });
}

/** A pod as a plugin may name it, whether it was offered or not. */
export function podNamed(name: string, uid: string, namespace = "default"): Uint8Array {
  return Pod.encode(Pod.fromPartial({ metadata: { name, uid, namespace } })).finish();
}

/** Serves it in the directory that the agent watches. */
export async function startEvictionPlugin(pluginDir: string, name: string): Promise<TestEvictionPlugin> {
  const server: Server = createServer({ "grpc.max_receive_message_length": -1 });
  const plugin: TestEvictionPlugin = {
    threshold: {},
    top: () => ({}),
    evictPods: () => ({}),
    topRequests: [],
    token: "",
    rounds: 0,
    registered: undefined,
    refusal: "",
    stop: async () => server.forceShutdown(),
  };
  const namesOf = (pods: Uint8Array[]) => pods.map((bytes) => Pod.decode(bytes).metadata?.name ?? "");
  server.add(RegistrationDefinition, {
    getInfo: async () => ({
      type: "EvictionPlugin",
      name,
      endpoint: "",
      supportedVersions: ["v1alpha1"],
    }),
    async notifyRegistrationStatus({ pluginRegistered, error }) {
      plugin.registered = pluginRegistered;
      plugin.refusal = error;
      return {};
    },
  });
  server.add(EvictionPluginDefinition, {
    getToken: async () => ({ token: plugin.token }),
    async thresholdMet() {
      plugin.rounds++;
      return plugin.threshold;
    },
    async getTopEvictionPods({ activePods, topN, candidateEvictionRecords: records }) {
      const offered = namesOf(activePods);
      plugin.topRequests.push({ offered, topN: Number(topN), records });
      return plugin.top(offered, activePods);
    },
    async getEvictPods({ activePods }) {
      return plugin.evictPods(namesOf(activePods), activePods);
    },
  });
  await server.listen(`unix:${join(pluginDir, `${name}.sock`)}`);
  return plugin;
}

/** Waits until two more rounds have asked the plugin: what one was about to do is done when the next begins. */
export async function untilNextRounds(plugin: TestEvictionPlugin): Promise<void> {
  const { rounds } = plugin;
  await until("the next rounds", () => plugin.rounds >= rounds + 2);
}
