export type Side = "agent" | "peer";

/** Runs a workload once against one side; returns the figure in the row's unit. */
export type Measure = (run: { side: Side; peer: string; quick: boolean }) => Promise<number>;
