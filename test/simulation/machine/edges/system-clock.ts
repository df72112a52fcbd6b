// The clock of the operating system on virtual time. Timers have no slack.
import { type Clock, sleepOn } from "../../../../packages/core/src/lib/clock.ts";
import { currentProcess } from "../process.ts";

export const systemClock: Clock = {
  now: () => currentProcess().clock.now(),
  monotonic: () => currentProcess().clock.monotonic(),
  // In whole milliseconds, and one more for long timers, as on a real system.
  after: (ms, callback) => currentProcess().clock.after(Math.ceil(ms) + (ms >= 100 ? 1 : 0), callback),
  sleep(ms, signal) {
    return sleepOn(this, ms, signal);
  },
};
