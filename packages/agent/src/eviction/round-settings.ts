/** What the operator sets of the round besides the policy. Times are milliseconds. */
export interface EvictionSettings {
  /** From the beginning of one round to the beginning of the next. */
  syncPeriodMs: number;
  /** How long a plugin's call may take; never longer than the period. */
  callTimeoutMs: number;
  /** Whether plugins may start a round before its time. */
  outOfTurnRounds: boolean;
  records: {
    /** How long rounds are kept. */
    maxAgeMs: number;
    /** What all of them together may take in the database, about. */
    maxBytes: number;
  };
}

/** What holds where the operator says nothing. */
export const defaultEvictionSettings: Readonly<EvictionSettings> = {
  syncPeriodMs: 5_000,
  callTimeoutMs: 10_000,
  outOfTurnRounds: true,
  records: { maxAgeMs: 7 * 24 * 60 * 60_000, maxBytes: 64 * 1024 * 1024 },
};
