import { type AgentConfiguration, defaultConfiguration } from "../config/index.ts";

/** Times in milliseconds. */
export interface RuntimeSettings {
  /** Timeout of one call; the kubelet's default (runtimeRequestTimeout). */
  requestTimeoutMs: number;
  /** Timeout for establishing a connection, after which another one is tried. */
  connectDeadlineMs: number;
  /** Maximum size of a message, bytes; the kubelet's limit (cri-client maxMsgSize). */
  maxMessageBytes: number;
  /** Maximum number of sandboxes or containers in a streamed list. */
  maxListed: number;
  /** Maximum number of concurrent status calls for one pod. */
  statusConcurrency: number;
  /** Maximum number of containers without a sandbox to look up for one list, and the timeout of one look-up. */
  ownerLookups: number;
  ownerLookupDeadlineMs: number;
  /** Number of containers and sandboxes that are no longer listed whose pod is kept. */
  rememberedOwners: number;
}

// What no operator has to set.
const fixed = {
  connectDeadlineMs: 10_000,
  maxListed: 200_000,
  statusConcurrency: 8,
  ownerLookups: 50,
  ownerLookupDeadlineMs: 2_000,
  rememberedOwners: 10_000,
} as const satisfies Partial<RuntimeSettings>;

/** All settings, of the configuration. */
export function runtimeSettingsOf({ runtime }: Pick<AgentConfiguration, "runtime">): RuntimeSettings {
  return { ...fixed, requestTimeoutMs: runtime.requestTimeout, maxMessageBytes: runtime.maxMessageSize };
}

/** All settings; those that are not given as the configuration has them by default. */
export function completeRuntimeSettings(given: Partial<RuntimeSettings> = {}): RuntimeSettings {
  return { ...runtimeSettingsOf(defaultConfiguration()), ...given };
}
