import type { Host } from "./host.ts";
import {
  LEAST_FREE,
  MEMORY_CONDITION,
  MEMORY_PLUGIN,
  MOST_PIDS,
  MOST_STALLS,
  PID_PLUGIN,
  PRESSURE_MS,
} from "./in-tree-settings.ts";

/** A pod, as far as in-tree plugins distinguish them. */
interface Pod {
  uid: string;
  name: string;
}

/** A period in which a plugin has read the host, in virtual milliseconds. */
export interface Judged {
  from: number;
  to: number;
  /** How long there may be no pressure without the plugin noticing it. */
  unseenMs: number;
}

/** What in-tree eviction plugins may do, by what the host's files said. */
export class InTree {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The condition that is reported now, if its plugin runs, and the plugin. */
  get condition(): { name: string; plugin: string } | undefined {
    const { isWatched, memory, stalls } = this.#host;
    const isMet = isShort(memory.readable.last) || isStalled(stalls.readable.last);
    return isWatched && isMet ? { name: MEMORY_CONDITION, plugin: MEMORY_PLUGIN } : undefined;
  }

  /** Returns the plugins that may have requested a pod in a period, in virtual milliseconds. */
  mayAsk(pod: Pod, from: number, to: number): string[] {
    if (!this.#host.isWatched) return [];
    return [
      ...(this.isPressed(pod.name, { from, to, unseenMs: LONGEST_ROUND_MS }) ? [MEMORY_PLUGIN] : []),
      ...(this.isOver(pod.uid, from, to) ? [PID_PLUGIN] : []),
    ];
  }

  /** Returns the plugins that request a pod for readings that have not changed for long. */
  asks(pod: Pod, now: number): string[] {
    if (!this.#host.isWatched) return [];
    return [
      ...(this.isPressed(pod.name, { from: now, to: now, unseenMs: 0 }) ? [MEMORY_PLUGIN] : []),
      ...(this.isOver(pod.uid, now, now) ? [PID_PLUGIN] : []),
    ];
  }

  /** Returns whether memory was short in a period, or stalls lasted for so long, that a pod was a candidate. */
  isPressed(pod: string, { from, to, unseenMs }: Judged): boolean {
    const { memory, stalls, reclaimed } = this.#host;
    const isReclaimed = pod.startsWith(`${reclaimed}-`);
    if (isReclaimed && memory.readable.during(from, to).some(isShort)) return true;
    const durationMs = (isReclaimed ? 1 : 3) * PRESSURE_MS;
    let [since, until] = [0, Number.NEGATIVE_INFINITY];
    for (const span of stalls.readable.spans(0, to)) {
      if (!isStalled(span.value)) continue;
      if (span.from - until > unseenMs) since = span.from;
      until = span.to;
      if (until >= from && until - since >= durationMs) return true;
    }
    return false;
  }

  /** Returns whether a pod had more processes than it may in a period. */
  isOver(uid: string, from: number, to: number): boolean {
    return this.#host.pods.pidsOf(uid)?.during(from, to).some(isMany) ?? false;
  }
}

// The longest time between two rounds: four periods of 5 s.
const LONGEST_ROUND_MS = 20_000;

/** Returns whether free memory, in percent, is below the minimum. Undefined: it can't be read. */
export function isShort(percent: number | undefined): boolean {
  return percent !== undefined && percent < LEAST_FREE;
}

function isStalled(percent: number | undefined): boolean {
  return percent !== undefined && percent >= MOST_STALLS;
}

function isMany(pids: number | undefined): boolean {
  return pids !== undefined && pids > MOST_PIDS;
}
