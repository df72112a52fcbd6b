export type Side = "agent" | "peer";

/** The figures of one run by the names of their rows, in the rows' units. */
export type Figures = Readonly<Record<string, number>>;

/** Runs a workload once against one side. */
export type Measure = (run: { side: Side; peer: string; quick: boolean }) => Promise<Figures>;
