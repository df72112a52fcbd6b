import fc from "fast-check";
import type { FuzzTarget } from "./fuzz-target.ts";

/** The most own CPU time that one input may take, milliseconds: inputs are small. */
const MOST_CPU_MS = 2_000;

export interface FuzzOptions {
  seconds: number;
  seed: number;
  /** Of an earlier finding, with its seed: that input alone is tried. */
  path?: string | undefined;
}

export interface FuzzOutcome {
  inputs: number;
  finding?: { input: Uint8Array; path: string; error: unknown };
}

/** Tries inputs of a target for a time, or until one breaks a rule; that one is then made as small as can be. */
export async function fuzz(target: FuzzTarget, { seconds, seed, path }: FuzzOptions): Promise<FuzzOutcome> {
  const property = fc.asyncProperty(target.inputs, (input) => tryInput(target, input));
  const details = await fc.check(property, {
    seed,
    ...(path === undefined
      ? { numRuns: 1e9, interruptAfterTimeLimit: seconds * 1_000 }
      : { path, endOnFailure: true }),
    markInterruptAsFailure: false,
  });
  const [input] = details.counterexample ?? [];
  if (!details.failed || !input) return { inputs: details.numRuns };
  return {
    inputs: details.numRuns,
    finding: { input, path: details.counterexamplePath ?? "", error: details.errorInstance },
  };
}

/** Runs one input and bounds what it costs. Throws where it breaks a rule. */
export async function tryInput(target: FuzzTarget, input: Uint8Array): Promise<void> {
  const before = process.cpuUsage();
  await target.run(input);
  const { user, system } = process.cpuUsage(before);
  const cpuMs = (user + system) / 1_000;
  if (cpuMs > MOST_CPU_MS) throw new Error(`${input.length} bytes took ${Math.round(cpuMs)} ms of CPU`);
}
