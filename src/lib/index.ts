export { abortable, childScope, deadlineScope, type ScopedSignal, stopped, withDeadline } from "./abort.ts";
export { Backoff, type BackoffOptions, delayAfter } from "./backoff.ts";
export { type Clock, systemClock, type Timer } from "./clock.ts";
export {
  codeOf,
  type ErrorCode,
  type ErrorDetails,
  errorCodes,
  messageOf,
  NodekeeperError,
  toError,
} from "./errors.ts";
export { FakeClock } from "./fake-clock.ts";
export type { HealthCheck, HealthResult } from "./health.ts";
export { createLogger, type Logger, type LogLevel, silentLogger } from "./log.ts";
export { Counter, Gauge, Histogram, Registry } from "./metrics.ts";
export type { Runnable } from "./runnable.ts";
