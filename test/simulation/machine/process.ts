import { AsyncLocalStorage } from "node:async_hooks";
// Not from the index of the room, which imports the edges.
import { type Clock, sleepOn, type Timer } from "../../../packages/core/src/lib/clock.ts";
import type { Scheduler } from "./scheduler.ts";

/** Thrown by the edges of a process that was killed. Nothing of it has an effect on the world any more. */
export class Killed extends Error {
  constructor(name: string) {
    super(`${name} was killed`);
  }
}

const running = new AsyncLocalStorage<Process>();

/** Returns the process whose code runs now. Throws outside of processes: all code of a world runs in one. */
export function currentProcess(): Process {
  const process = running.getStore();
  if (!process) throw new Error("code of the simulation ran outside of a process");
  return process;
}

/** Like `currentProcess`, for globals that are also used outside of worlds. */
export function processIfAny(): Process | undefined {
  return running.getStore();
}

/** A process of the machine: the agent, a plugin, the API server. It can be killed and frozen at any event. */
export class Process {
  readonly name: string;
  readonly pid: number;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  isDead = false;
  /** Number of callbacks that ran. */
  steps = 0;
  /** Counts what the process keeps, in worlds that are about that: a `Census`. */
  census: { timer(callback: () => void, start: (callback: () => void) => Timer): Timer } | undefined;
  readonly #held: (() => void)[] = [];
  // Faster than to enter the storage each time.
  readonly #enter = running.run(this, () => AsyncLocalStorage.snapshot());
  #isFrozen = false;
  #thawedAt = Number.NEGATIVE_INFINITY;
  #edgesLeft = Number.POSITIVE_INFINITY;
  #onDeath: (() => void)[] = [];

  /** @param wall returns wall milliseconds since the epoch */
  constructor(name: string, pid: number, scheduler: Scheduler, wall: () => number) {
    this.name = name;
    this.pid = pid;
    this.scheduler = scheduler;
    this.clock = clockOf(this, wall);
  }

  /** Runs code as this process, and all that follows from it. */
  run<T>(code: () => T): T {
    return this.#enter(code);
  }

  /** Runs `callback` in this process after `ms`: not if it is dead by then, and later if it is frozen. */
  after(ms: number, callback: () => void): Timer {
    const { census, scheduler } = this;
    if (!census) return scheduler.after(ms, () => this.#deliver(callback));
    return census.timer(callback, (due) => scheduler.after(ms, () => this.#deliver(due)));
  }

  /** The same at a virtual time. */
  at(dueAt: number, callback: () => void): Timer {
    return this.scheduler.at(dueAt, () => this.#deliver(callback));
  }

  /**
   * Called by every edge before it acts. Throws if the process is dead, also if it dies now: see `killAtEdge`.
   */
  edge(): void {
    if (!this.isDead && --this.#edgesLeft < 0) this.kill();
    if (this.isDead) throw new Killed(this.name);
  }

  /** Kills the process just before it acts on the world for the n-th time from now: n = 0 is the next time. */
  killAtEdge(n: number): void {
    this.#edgesLeft = n;
  }

  /** What SIGKILL does. Idempotent. */
  kill(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.#held.length = 0;
    for (const callback of this.#onDeath.splice(0)) callback();
  }

  /** Calls back when the process dies, before anything else happens. Returns a function that unsubscribes. */
  onDeath(callback: () => void): () => void {
    this.#onDeath.push(callback);
    return () => {
      this.#onDeath = this.#onDeath.filter((other) => other !== callback);
    };
  }

  /** Number of sockets, watches of files and databases that it has open. */
  get handles(): number {
    return this.#onDeath.length;
  }

  /** What SIGSTOP does: events wait. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** What SIGCONT does. */
  thaw(): void {
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    this.#thawedAt = this.scheduler.now;
    for (const callback of this.#held.splice(0)) this.after(0, callback);
  }

  /** Whether what happens now has waited while it was frozen. */
  get isCatchingUp(): boolean {
    return this.#thawedAt === this.scheduler.now;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  #deliver(callback: () => void): void {
    if (this.isDead) return;
    if (this.#isFrozen) {
      this.#held.push(callback);
      return;
    }
    this.steps++;
    try {
      this.run(callback);
    } catch (error) {
      // As the event loop does: nobody called the callback who could catch it.
      this.run(() =>
        queueMicrotask(() => {
          throw error;
        }),
      );
    }
  }
}

function clockOf(process: Process, now: () => number): Clock {
  return {
    now,
    monotonic: () => process.scheduler.now,
    after: (ms, callback) => process.after(ms, callback),
    sleep(ms, signal) {
      return sleepOn(this, ms, signal);
    },
  };
}
