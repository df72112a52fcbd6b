import { type AgentConfiguration, defaultConfiguration } from "@nodekeeper/api/settings";

// Not configurable. Tests override them.
const fixed = {
  /** Timeout for establishing a connection. After that, a new connection is tried. */
  connectDeadlineMs: 10_000,
  /** Maximum number of sandboxes or containers in one list response. */
  maxListed: 200_000,
  /** Maximum number of concurrent status calls for one pod. */
  statusConcurrency: 8,
  /** Maximum number of containers without a sandbox to look up per list, and the timeout of one lookup. */
  ownerLookups: 50,
  ownerLookupDeadlineMs: 2_000,
  /**
   * Number of containers and sandboxes whose pod is remembered after they are no longer listed, because events for
   * them may follow. Enough for the drain of a full node.
   */
  rememberedOwners: 2_000,
};

/**
 * The `runtime` section of the configuration and the fixed settings. Durations are in milliseconds, sizes in
 * bytes.
 */
export type RuntimeSettings = Omit<AgentConfiguration["runtime"], "endpoint"> & typeof fixed;

/** Completes settings with the defaults of the configuration. */
export function completeRuntimeSettings(given: Partial<RuntimeSettings> = {}): RuntimeSettings {
  return { ...fixed, ...defaultConfiguration().runtime, ...given };
}
