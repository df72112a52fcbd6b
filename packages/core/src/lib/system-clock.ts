import { type Clock, sleepOn } from "./clock.ts";

// setTimeout fires immediately for longer delays (2^31-1 ms, about 24 days).
const LONGEST_DELAY_MS = 2_147_483_647;
const LONG_DELAY_MS = 100;
// Timers from this duration on fire up to SLACK_MS late, so that they can share a wake-up with another timer.
const SLACK_FROM_MS = 2_000;
const SLACK_MS = 250;

interface PendingTimer {
  due: number;
  /** Calls back in a later phase of this turn of the event loop, unless it is cancelled before. */
  fireSoon(): void;
}

/**
 * Creates a clock of the operating system. Timers of two seconds or more fire up to 250 ms late, together with the
 * first other timer of the clock that fires within that time, because waking an idle process takes more CPU time than
 * most callbacks. The callbacks of timers that fire together run in the order of their due times, as if each had its
 * own wake-up, but in the asynchronous context of one of them.
 */
export function createSystemClock(): Clock {
  const withSlack = new Set<PendingTimer>();
  // Lower bound of their due times.
  let firstDue = Number.POSITIVE_INFINITY;

  const takeDue = (): PendingTimer[] => {
    const now = performance.now();
    if (now < firstDue) return [];
    const due = [...withSlack].filter((timer) => timer.due <= now);
    for (const timer of due) withSlack.delete(timer);
    firstDue = Number.POSITIVE_INFINITY;
    for (const timer of withSlack) firstDue = Math.min(firstDue, timer.due);
    return due;
  };

  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after(ms, callback) {
      const due = performance.now() + Math.max(ms, 0);
      // setTimeout counts whole milliseconds of a different clock and may fire up to 2 ms early. Long delays are
      // extended by a millisecond, so that the timer does not fire early and wake the process twice.
      const lateMs = ms >= SLACK_FROM_MS ? SLACK_MS : ms >= LONG_DELAY_MS ? 1 : 0;
      const arm = (leftMs: number) =>
        setTimeout(wakeUp, Math.min(Math.ceil(leftMs) + lateMs, LONGEST_DELAY_MS));
      const wakeUp = () => {
        const leftMs = due - performance.now();
        if (leftMs > 0) handle = arm(leftMs);
        else withSlack.delete(timer);
        const others = takeDue();
        if (leftMs <= 0 && others.length === 0) {
          callback();
          return;
        }
        if (leftMs <= 0) others.push(timer);
        for (const other of others.sort((a, b) => a.due - b.due)) other.fireSoon();
      };
      let handle = arm(Math.max(ms, 0));
      let immediate: NodeJS.Immediate | undefined;
      const timer: PendingTimer = {
        due,
        // Promises settle between immediates, so that a callback can cancel a timer that is due later.
        fireSoon() {
          clearTimeout(handle);
          immediate = setImmediate(callback);
        },
      };
      if (ms >= SLACK_FROM_MS) {
        withSlack.add(timer);
        firstDue = Math.min(firstDue, due);
      }
      return {
        cancel() {
          clearTimeout(handle);
          clearImmediate(immediate);
          withSlack.delete(timer);
        },
      };
    },
    sleep(ms, signal) {
      return sleepOn(this, ms, signal);
    },
  };
}

/** The clock of the process. */
export const systemClock = createSystemClock();
