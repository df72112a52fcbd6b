import { counted, leaveOut } from "./census.ts";
import { machineIfAny } from "./machine.ts";
import { Killed, processIfAny } from "./process.ts";

/**
 * Replaces the globals for time and random numbers in code that runs in a process of the machine, libraries included.
 * Other code, such as the runner, gets the real ones.
 */
export function replaceGlobals(): void {
  const { random } = Math;
  const RealDate = Date;
  const realNow = performance.now.bind(performance);
  const real = { setTimeout, clearTimeout, setImmediate, setInterval, clearInterval };

  Math.random = () => machineIfAny()?.random() ?? random();
  const now = () => machineIfAny()?.wall ?? RealDate.now();
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args) => (args.length === 0 ? new target(now()) : Reflect.construct(target, args)),
    get: (target, key, receiver) => (key === "now" ? now : Reflect.get(target, key, receiver)),
  });
  performance.now = () => machineIfAny()?.scheduler.now ?? realNow();

  const { cpuUsage, threadCpuUsage } = process;
  process.cpuUsage = (previous) =>
    processIfAny() ? { user: 0, system: 0 } : cpuUsage.call(process, previous);
  process.threadCpuUsage = (previous) =>
    processIfAny() ? { user: 0, system: 0 } : threadCpuUsage.call(process, previous);
  const later = (callback: () => void, ms = 0) => processIfAny()?.after(ms, callback);
  const timerOf = (timer: { cancel: () => void }) =>
    Object.assign(timer, { ref: () => timer, unref: () => timer, hasRef: () => true, refresh: () => timer });
  const cancel = (timer: unknown, clear: (timer: never) => void) => {
    if (timer && typeof timer === "object" && "cancel" in timer) (timer as { cancel: () => void }).cancel();
    else clear(timer as never);
  };
  Object.assign(globalThis, {
    setTimeout(callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) {
      const timer = later(() => callback(...args), ms);
      return timer ? timerOf(timer) : real.setTimeout(callback, ms, ...args);
    },
    setImmediate(callback: (...args: unknown[]) => void, ...args: unknown[]) {
      const timer = later(() => callback(...args));
      return timer ? timerOf(timer) : real.setImmediate(callback, ...args);
    },
    clearTimeout: (timer: unknown) => cancel(timer, real.clearTimeout),
  });
  const realAny = AbortSignal.any.bind(AbortSignal);
  AbortSignal.any = (signals) => (processIfAny() ? anyOf([...signals]) : realAny(signals));
  const realTimeout = AbortSignal.timeout.bind(AbortSignal);
  AbortSignal.timeout = (ms) => {
    if (!processIfAny()) return realTimeout(ms);
    const controller = new AbortController();
    later(() => controller.abort(new DOMException("The operation timed out", "TimeoutError")), ms);
    return controller.signal;
  };
}

/**
 * `AbortSignal.any` for processes of the machine. Its signals are released with their world. Node would keep those with
 * listeners until they abort, which never happens in a killed process.
 */
function anyOf(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new (counted(AbortController, "AbortSignal.any"))();
  const first = signals.find(({ aborted }) => aborted);
  if (first) controller.abort(first.reason);
  else
    for (const signal of signals) {
      signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
      leaveOut(signal);
    }
  return controller.signal;
}

/**
 * Calls back for each uncaught error and unhandled rejection of a live process, which would end a real one. Those of
 * dead processes are ignored. Outside of processes, prints the error and exits with status 1.
 */
export function onUncaught(callback: (error: unknown) => void): void {
  const take = (error: unknown) => {
    const process = processIfAny();
    if (!process) {
      console.error(error);
      globalThis.process.exit(1);
    }
    if (!process.isDead && !(error instanceof Killed)) callback(error);
  };
  process.on("uncaughtException", take);
  process.on("unhandledRejection", take);
}
