import { type Clock, sleepOn } from "./clock.ts";

// setTimeout fires immediately for longer delays (2^31-1 ms, about 24 days).
const LONGEST_DELAY_MS = 2_147_483_647;
const LONG_DELAY_MS = 100;
// Longer timers fire up to SLACK_MS late, so that they can share a wake-up with another timer.
const SLACK_FROM_MS = 2_000;
const SLACK_MS = 250;

interface TimerWithSlack {
  due: number;
  fire: () => void;
}

const withSlack = new Set<TimerWithSlack>();
/** Lower bound of their due times. */
let firstDue = Number.POSITIVE_INFINITY;

/**
 * The clock of the operating system. A timer of two seconds or more fires up to 250 ms late, together with the first other
 * timer that fires in this time: a wake-up of an idle process takes more CPU time than most callbacks.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const due = performance.now() + Math.max(ms, 0);
    // setTimeout counts whole milliseconds of a different clock and may fire up to 2 ms early. For long delays, another
    // millisecond is added, so that the timer does not fire early and wake the process twice.
    const lateMs = ms >= SLACK_FROM_MS ? SLACK_MS : ms >= LONG_DELAY_MS ? 1 : 0;
    const wakeUp = () => {
      const leftMs = due - performance.now();
      if (leftMs > 0) handle = arm(leftMs);
      else timer.fire();
      fireDue();
    };
    const arm = (leftMs: number) =>
      setTimeout(wakeUp, Math.min(Math.ceil(leftMs) + lateMs, LONGEST_DELAY_MS));
    let handle = arm(Math.max(ms, 0));
    const cancel = () => {
      clearTimeout(handle);
      withSlack.delete(timer);
    };
    const timer = {
      due,
      fire: () => {
        cancel();
        callback();
      },
    };
    if (ms >= SLACK_FROM_MS) {
      withSlack.add(timer);
      firstDue = Math.min(firstDue, due);
    }
    return { cancel };
  },
  sleep(ms, signal) {
    return sleepOn(this, ms, signal);
  },
};

/** Fires the timers with slack that are due. If a callback throws, the others fire in wake-ups of their own. */
function fireDue(): void {
  const now = performance.now();
  if (now < firstDue) return;
  const due = [...withSlack].filter((timer) => timer.due <= now).sort((one, other) => one.due - other.due);
  for (const timer of due) if (withSlack.has(timer)) timer.fire();
  firstDue = Number.POSITIVE_INFINITY;
  for (const timer of withSlack) firstDue = Math.min(firstDue, timer.due);
}
