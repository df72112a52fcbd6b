import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Configures V8 for low memory use instead of speed, except for what would delay the start. Must be called before
 * significant allocations. The figures are of an agent with 110 pods unless stated otherwise.
 */
export function keepStartSmall(): void {
  // With --optimize-for-size alone, the old generation may grow by only 10 %, which is less than the space that V8
  // reserves for young objects: an idle agent collected its whole heap of 15 MB every 4 s, for 0.3 MB of garbage. This
  // setting halves the idle CPU time and costs about 2 MB.
  setFlagsFromString("--heap-growing-percent=30");
  // Most objects are short-lived. A young generation that has grown is not returned to the operating system.
  setFlagsFromString("--semi-space-growth-factor=1");
  // Hot functions are still optimized by TurboFan. Disabling Sparkplug saves 2.3 to 2.8 MB. Lists and claims then take
  // 13 to 24 % more CPU time, and an idle agent 5 % more.
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
 * Allows V8 to optimize functions during the first five minutes, and after that for ten seconds every ten minutes. V8
 * optimizes a function after a number of invocations, no matter how long they take to accumulate: within hours, every
 * function that runs once a second is optimized, and V8 keeps its machine code and deoptimization data. While TurboFan
 * is off, V8 restarts the count when it reaches that number. A function with r invocations per second is therefore
 * optimized after 600,000/r seconds on average. A function with 1,000 invocations per second is optimized in the next
 * window, and so is a deoptimized function, which is interpreted until then. In the first five minutes, 33 invocations
 * per second are enough.
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

/**
 * Runs a full garbage collection, so that memory used only during the start is returned to the operating system. Blocks
 * the process for about 0.1 s.
 */
export function returnMemoryOfStart(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as NodeJS.GCFunction;
  setFlagsFromString("--no-expose-gc");
  // Only this flavor also discards the code of functions that are no longer called.
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
