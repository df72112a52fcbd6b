import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Timer } from "../../../packages/core/src/lib/clock.ts";
import { processIfAny } from "./process.ts";

interface Counted {
  /** Where the object was created: "eviction/observe/pod-watch.ts #pods". */
  readonly place: string;
  readonly object: WeakRef<object>;
  /** Returns how much the object holds. */
  readonly sizeOf: (object: never) => number;
}

// biome-ignore lint/suspicious/noExplicitAny: constructors of any class
type AnyClass = new (...args: any[]) => object;

// References to collected objects are dropped once the list exceeds twice the number of live objects by this many.
const LEAST_DROPPED = 10_000;

/**
 * Counts what a process holds in memory, by the place in the sources that created it: entries of maps and sets, items
 * of arrays in class fields, listeners of abort signals, and pending timers. `countedSource` inserts calls of `counted`
 * and `censusIfAny` into the agent's sources.
 */
export class Census {
  #objects: Counted[] = [];
  #mostObjects = LEAST_DROPPED;
  readonly #timers = new Set<() => void>();
  readonly #classes = new Map<string, AnyClass>();

  /** Returns a class that creates objects of `Class` and counts them. */
  classOf(Class: AnyClass, place: string): AnyClass {
    const known = this.#classes.get(place);
    if (known) return known;
    const census = this;
    function Created(...args: unknown[]): object {
      const object = new Class(...args);
      if (object instanceof AbortController) census.add(place, object.signal, listenersOf);
      else census.add(place, object as Set<unknown>, ({ size }) => size);
      return object;
    }
    const made = Created as unknown as AnyClass;
    this.#classes.set(place, made);
    return made;
  }

  /** Counts what an object holds, as long as it is alive. */
  add<T extends object>(place: string, object: T, sizeOf: (object: T) => number): void {
    this.#objects.push({ place, object: new WeakRef(object), sizeOf });
    if (this.#objects.length > this.#mostObjects) this.#dropGone();
  }

  /** Counts a timer until it runs or is cancelled. @param start starts it with the callback that it is given */
  timer(callback: () => void, start: (callback: () => void) => Timer): Timer {
    const timers = this.#timers.add(callback);
    const timer = start(() => {
      timers.delete(callback);
      callback();
    });
    return {
      cancel: () => {
        timers.delete(callback);
        timer.cancel();
      },
    };
  }

  /** Returns how much is held at each place. Collects the garbage first: what nobody can reach is not held. */
  take(): ReadonlyMap<string, number> {
    setFlagsFromString("--expose-gc");
    runInNewContext("gc")();
    this.#dropGone();
    const sizes = new Map<string, number>();
    const add = (place: string, size: number) => sizes.set(place, (sizes.get(place) ?? 0) + size);
    for (const { place, object, sizeOf } of this.#objects) add(place, sizeOf(object.deref() as never));
    for (const callback of this.#timers) add(`timer ${callback.toString().replaceAll(/\s+/g, " ")}`, 1);
    return sizes;
  }

  #dropGone(): void {
    this.#objects = this.#objects.filter(({ object }) => object.deref() !== undefined);
    this.#mostObjects = 2 * this.#objects.length + LEAST_DROPPED;
  }
}

// Listeners of `AbortSignal.any`, of which Node has none: it keeps composite signals weakly.
const composed = new WeakMap<AbortSignal, number>();

/** Leaves a listener of a signal out of the count, which `AbortSignal.any` has added in the simulation alone. */
export function leaveOut(signal: AbortSignal): void {
  composed.set(signal, (composed.get(signal) ?? 0) + 1);
}

function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, "abort").length - (signal.aborted ? 0 : (composed.get(signal) ?? 0));
}

/** Returns the class itself, or one that counts what it creates if the process that runs is counted. */
export function counted<C extends AnyClass>(Class: C, place: string): C {
  return (censusIfAny()?.classOf(Class, place) as C | undefined) ?? Class;
}

/** Returns the census of the process that runs, if it is counted. */
export function censusIfAny(): Census | undefined {
  return processIfAny()?.census as Census | undefined;
}
