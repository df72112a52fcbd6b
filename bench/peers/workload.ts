import { loadavg } from "node:os";
import { printProgress } from "../../scripts/programs.ts";
import { within } from "../time-limit.ts";
import type { Programs } from "./go-programs.ts";
import type { Figures, Run, Side } from "./measure.ts";
import { measurements } from "./measurements.ts";
import type { Pair } from "./results.ts";
import { type RowName, rows, type Workload } from "./rows.ts";

const MOST_MINUTES = 5;

interface Options {
  programs: Programs;
  runs: number;
  quick: boolean;
}

/** The pairs of some rows of a workload, and the load average of a minute before the first. */
export interface Measured {
  pairs: ReadonlyMap<RowName, readonly Pair[]>;
  load: number;
}

/** Measures rows of one workload. Throws if a run fails or takes too long. */
export async function measureWorkload(
  workload: Workload,
  wanted: readonly RowName[],
  { programs, runs, quick }: Options,
): Promise<Measured> {
  const [load = 0] = loadavg();
  const pairs = new Map<RowName, Pair[]>(wanted.map((name) => [name, []]));
  for (let at = 1; at <= runs; at++) {
    const measured = await measurePair(workload, { ...programs, quick });
    for (const name of wanted) {
      const pair = pairOf(measured.agent[name]!, measured.peer[name]!);
      pairs.get(name)!.push(pair);
      const peer = `${pair.peerAtLeast ? "at least " : ""}${pair.peer}`;
      printProgress(`${name}, pair ${at} of ${runs}: ${pair.agent} and ${peer} ${rows[name].unit}`);
    }
  }
  return { pairs, load: rounded(load) };
}

async function measurePair(
  workload: Workload,
  options: Omit<Run, "side" | "alone">,
): Promise<Record<Side, Figures>> {
  const { measure, sideBySide = false } = measurements[workload];
  const alone = inTurns();
  const side = (side: Side) =>
    within(`${workload} of the ${side}`, MOST_MINUTES, () => measure({ ...options, side, alone }));
  if (!sideBySide) return { agent: await side("agent"), peer: await side("peer") };
  const both = [side("agent"), side("peer")] as const;
  // If one fails, the other one still ends before the next workload.
  await Promise.allSettled(both);
  return { agent: await both[0], peer: await both[1] };
}

/** Returns what runs one piece of work after the other. */
function inTurns(): Run["alone"] {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => {});
    return next;
  };
}

function pairOf(agent: Figures[string], peer: Figures[string]): Pair {
  if (typeof agent !== "number") throw new Error("the agent was given up on");
  return typeof peer === "number"
    ? { agent: rounded(agent), peer: rounded(peer) }
    : { agent: rounded(agent), peer: rounded(peer.atLeast), peerAtLeast: true };
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
