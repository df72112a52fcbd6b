/** Times in milliseconds. */
export interface RuntimeSettings {
  /** How long one call may take; the kubelet's default. */
  callDeadlineMs: number;
  /** How long a connection may take to come up; then another one is tried. */
  connectDeadlineMs: number;
  /** The largest message taken, bytes; the kubelet's limit. */
  maxReceiveBytes: number;
  /** How many sandboxes or containers a streamed list may have. */
  maxListed: number;
  /** How many statuses of one pod are asked for at once. */
  statusConcurrency: number;
  /** How many containers without a sandbox are looked up in one list, and how long one look-up may take. */
  ownerLookups: number;
  ownerLookupDeadlineMs: number;
  /** Of how many containers and sandboxes that are no longer listed the pod is remembered. */
  rememberedOwners: number;
}

export const defaultRuntimeSettings: Readonly<RuntimeSettings> = {
  callDeadlineMs: 120_000,
  connectDeadlineMs: 10_000,
  maxReceiveBytes: 16 * 1024 * 1024,
  maxListed: 200_000,
  statusConcurrency: 8,
  ownerLookups: 50,
  ownerLookupDeadlineMs: 2_000,
  rememberedOwners: 10_000,
};
