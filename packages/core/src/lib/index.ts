export {
  abortable,
  childScope,
  deadlineScope,
  type ScopedSignal,
  stopped,
  untilAborted,
  withDeadline,
} from "./abort.ts";
export { Backoff, type BackoffOptions, delayAfter } from "./backoff.ts";
export { type BootTime, elapsedSince, readBootTime } from "./boot-time.ts";
export { parseByteSize, roundedBytes } from "./byte-size.ts";
export { type Clock, sleepOn, systemClock, type Timer } from "./clock.ts";
export { processCpuMs, threadCpuMs } from "./cpu-time.ts";
export { formatDuration, parseDuration } from "./duration.ts";
export {
  codeOf,
  type ErrorCode,
  type ErrorDetails,
  type ErrorId,
  errorCodes,
  errorIdOf,
  messageOf,
  messageWithId,
  NodekeeperError,
  toError,
  toNodekeeperError,
} from "./errors.ts";
export { ExpiringCache, type ExpiringCacheOptions } from "./expiring-cache.ts";
export { FakeClock } from "./fake-clock.ts";
export { stampOf } from "./file-stamp.ts";
export type { HealthCheck, HealthResult } from "./health.ts";
export { LatestValue } from "./latest-value.ts";
export { createLogger, type Logger, type LogLevel, silentLogger } from "./log.ts";
export { LoopTurns } from "./loop-turns.ts";
export { isLoopback } from "./loopback.ts";
export { Counter, Gauge, Histogram, Registry } from "./metrics.ts";
export { checkPluginName } from "./plugin-name.ts";
export { type ProbeResult, probeSocket } from "./probe-socket.ts";
export {
  compareQuantities,
  formatQuantity,
  isQuantity,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityOf,
  wholeUnits,
} from "./quantity.ts";
export { quote } from "./quote.ts";
export { RepairPace } from "./repair-pace.ts";
export {
  isNonRetryable,
  isTransient,
  type RetryPolicy,
  retryAfterOf,
  retryPolicies,
} from "./retry.ts";
export { type RunInOrderOptions, runInOrder } from "./run-in-order.ts";
export type { Runnable } from "./runnable.ts";
export { Semaphore, type SemaphoreOptions } from "./semaphore.ts";
export { SharedWork, type SharedWorkOptions } from "./shared-work.ts";
export { checkSocketPath, longestSocketPath } from "./socket-path.ts";
export { completed, inTurns, StepMeter, type Steps } from "./steps.ts";
export { TokenBucket, type TokenBucketOptions } from "./token-bucket.ts";
export { WakeableSleep } from "./wakeable-sleep.ts";
export { pause, withPauses } from "./with-pauses.ts";
export { type KeyHandler, WorkQueue, type WorkQueueOptions } from "./work-queue.ts";
export { createWorkQueueMetrics, type WorkQueueMetrics } from "./work-queue-metrics.ts";
