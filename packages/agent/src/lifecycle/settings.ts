/** Times in milliseconds. */
export interface LifecycleSettings {
  /** From the end of a relist to the start of the next; the seed's one second. */
  relistPeriodMs: number;
  /** The same while the runtime's events can be relied on. */
  hintedRelistPeriodMs: number;
  /** Without a relist for so long the node's state is not known; the seed's three minutes. */
  unhealthyAfterMs: number;
  /** How long one call to the runtime may take; the kubelet's default. */
  callDeadlineMs: number;
  /** A pod whose inspection takes longer is stale, and nothing waits for it. */
  inspectionPatienceMs: number;
  /** Inspections at once: at the start, and bounds within which their number follows the runtime's speed. */
  inspections: { initial: number; min: number; max: number };
  /** Inspections that may hang before no new one is begun. */
  maxOverdue: number;
  /** How many events the log keeps. */
  logCapacity: number;
  /** How many of them outlive the agent, where it has a state database: reading them back holds up its start. */
  savedEvents: number;
  /** How many single pods may wait for being read. */
  requestLimit: number;
  /** Whether to ask the runtime for its events at all. */
  useHints: boolean;
  /** An event stream that stays open for so long is a real one. */
  hintSettleMs: number;
  /** How much later than a list a hint may come without being counted as missed. */
  hintGraceMs: number;
  /** How long pods are listed at the short period after a change that no hint was sent for. */
  hintDistrustMs: number;
  /** How long after a start a snapshot or a reading waits for the first list. */
  firstListTimeoutMs: number;
  /** How often a runtime without events is asked for its version. */
  versionPollMs: number;
}

export const defaultLifecycleSettings: Readonly<LifecycleSettings> = {
  relistPeriodMs: 1_000,
  hintedRelistPeriodMs: 30_000,
  unhealthyAfterMs: 180_000,
  callDeadlineMs: 120_000,
  inspectionPatienceMs: 2_000,
  inspections: { initial: 10, min: 1, max: 32 },
  maxOverdue: 16,
  logCapacity: 100_000,
  savedEvents: 20_000,
  requestLimit: 1_000,
  useHints: true,
  hintSettleMs: 1_000,
  hintGraceMs: 1_000,
  hintDistrustMs: 300_000,
  firstListTimeoutMs: 10_000,
  versionPollMs: 30_000,
};
