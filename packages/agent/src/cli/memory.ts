import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Configures V8 for low memory use instead of speed, except for what would delay the start. Must be called before
 * significant allocations. The figures are of an agent with 110 pods unless stated otherwise.
 */
export function keepStartSmall(): void {
  // With --optimize-for-size alone, the old generation may grow by 10 %, which is less than the space V8 reserves for
  // young objects: an idle agent collected its whole heap of 15 MB every 4 s, for 0.3 MB of garbage. This setting halves
  // the idle CPU time and costs about 2 MB.
  setFlagsFromString("--heap-growing-percent=30");
  // Most objects are short-lived. A young generation that has grown is not returned to the operating system.
  setFlagsFromString("--semi-space-growth-factor=1");
  // Hot functions are still optimized by TurboFan. Disabling Sparkplug saves 2.3 to 2.8 MB; lists and claims then take 13 to
  // 24 % more CPU time, and an idle agent 5 % more.
  setFlagsFromString("--no-maglev");
  setFlagsFromString("--no-sparkplug");
  // By default 3,000. See also `limitOptimization`.
  setFlagsFromString("--invocation-count-for-turbofan=10000");
}

/**
 * Configures V8 for low memory use instead of speed. Measured with 50 plugins: 129 MB RSS without, 92 MB with.
 */
export function keepProcessSmall(): void {
  keepStartSmall();
  // At the start, when the heap grows, V8 would collect all of it again and again.
  setFlagsFromString("--optimize-for-size");
}

const FIRST_MS = 5 * 60_000;
const PERIOD_MS = 10 * 60_000;
const WINDOW_MS = 10_000;

/**
 * Lets V8 optimize functions in the first five minutes, and then for ten seconds every ten minutes. V8 optimizes a function
 * after a number of invocations, however much time they take: within hours, each one that runs once a second, whose machine
 * code and deoptimization data are then kept. While TurboFan is off, V8 starts to count again when the number is reached.
 * A function with r invocations a second is therefore optimized after 600,000/r seconds on average, one with 1,000 in the next
 * window; so is one that was deoptimized, which is interpreted until then. In the first five minutes, 33 invocations a second
 * suffice.
 * @param setFlag sets a flag of V8
 */
export function limitOptimization(setFlag = setFlagsFromString): void {
  const stop = () => setFlag("--no-turbofan");
  setTimeout(stop, FIRST_MS).unref();
  setInterval(() => {
    setFlag("--turbofan");
    setTimeout(stop, WINDOW_MS).unref();
  }, PERIOD_MS).unref();
}

/** Returns what only the start needed to the operating system. Blocks the process for about 0.1 s. */
export function returnMemoryOfStart(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as NodeJS.GCFunction;
  setFlagsFromString("--no-expose-gc");
  // The one flavor that also drops the code of functions that no longer run.
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
