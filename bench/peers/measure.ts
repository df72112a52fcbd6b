export type Side = "agent" | "peer";

/** The figures of one run by the names of their rows, in the rows' units. */
export type Figures = Readonly<Record<string, number | AtLeast>>;

/** Of a peer that was given up on: what had passed by then. */
export interface AtLeast {
  atLeast: number;
}

export interface Run {
  side: Side;
  /** The path of the peer's program. */
  peer: string;
  /** The path of the plugins' program; empty if the workload has none. */
  plugins: string;
  quick: boolean;
  /** Does what must not run beside that of the other side. */
  alone: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Runs a workload once against one side. */
export type Measure = (run: Run) => Promise<Figures>;
