/** One run of each side, one after the other. */
export interface Pair {
  agent: number;
  peer: number;
  /** The peer was given up on: its figure is at least this, and the ratio at most what is computed. */
  peerAtLeast?: true;
}

/** A file of bench/results. */
export interface Result {
  pairs: readonly Pair[];
  measured: {
    /** YYYY-MM-DD. */
    date: string;
    commit: string;
    machine: string;
    versions: string;
    /** Load average of a minute before the first pair. */
    load: number;
    command: string;
  };
}

/** Medians of both sides; median, least and greatest ratio of the pairs. */
export interface Summary {
  agent: number;
  peer: number;
  ratio: number;
  min: number;
  max: number;
  /** As of a pair, of all. */
  peerAtLeast?: true;
}

/** Throws if there are no pairs, or if a figure is not a positive number: no ratio can be computed of it. */
export function summaryOf(pairs: readonly Pair[]): Summary {
  if (pairs.length === 0) throw new Error("no pairs were measured");
  for (const { agent, peer } of pairs)
    if (!(agent > 0 && peer > 0 && Number.isFinite(agent / peer)))
      throw new Error(`the pair ${agent} and ${peer} has no ratio`);
  const ratios = pairs.map(({ agent, peer }) => agent / peer);
  return {
    agent: median(pairs.map(({ agent }) => agent)),
    peer: median(pairs.map(({ peer }) => peer)),
    ratio: median(ratios),
    min: Math.min(...ratios),
    max: Math.max(...ratios),
    ...(pairs.some(({ peerAtLeast }) => peerAtLeast) ? { peerAtLeast: true } : {}),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}
