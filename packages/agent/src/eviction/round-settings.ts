/** Settings of rounds besides the policy. Times are milliseconds. */
export interface EvictionSettings {
  /** From the start of one round to the start of the next. */
  syncPeriodMs: number;
  /** Timeout of a call to a plugin; at most the period. */
  callTimeoutMs: number;
  /** Whether plugins may request rounds out of turn. */
  outOfTurnRounds: boolean;
  records: {
    /** How long rounds are kept. */
    maxAgeMs: number;
    /** Approximate bound of their total size in the database, bytes. */
    maxBytes: number;
  };
}
