export {
  codeOf,
  type ErrorCode,
  type ErrorId,
  errorCodes,
  errorIdOf,
  messageOf,
  messageWithId,
  NodekeeperError,
  toError,
  toNodekeeperError,
} from "@nodekeeper/api/errors";
export {
  compareQuantities,
  compareText,
  formatDuration,
  formatQuantity,
  isQuantity,
  parseByteSize,
  parseDuration,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityOf,
  quote,
  roundedBytes,
  wholeUnits,
} from "@nodekeeper/api/text";
export {
  abortable,
  childScope,
  deadlineScope,
  type ScopedSignal,
  stopped,
  untilAborted,
  withDeadline,
} from "./abort.ts";
export { Backoff, delayAfter } from "./backoff.ts";
export { type BootTime, elapsedSince, readBootTime } from "./boot-time.ts";
export { type Clock, sleepOn, sleepOrAbort, type Timer } from "./clock.ts";
export { processCpuMs, threadCpuMs } from "./cpu-time.ts";
export {
  isRawNumber,
  parseExactly,
  parseWithBigInts,
  type RawNumber,
  rawNumber,
  withObjectsAsText,
} from "./exact-json.ts";
export { ExpiringCache } from "./expiring-cache.ts";
export { FakeClock } from "./fake-clock.ts";
export { stampOf } from "./file-stamp.ts";
export type { HealthCheck, HealthResult } from "./health.ts";
export { InotifyWatches } from "./inotify-watches.ts";
export { isDnsLabel, isDnsSubdomain, isLabelName, isLabelValue } from "./label-names.ts";
export { LatestValue } from "./latest-value.ts";
export { createLogger, type Logger, type LogLevel, silentLogger } from "./log.ts";
export { LoopTurns } from "./loop-turns.ts";
export { isLoopback } from "./loopback.ts";
export { type Counter, type Histogram, metricTable, Registry } from "./metrics.ts";
export { type Pace, PacedSocket } from "./paced-socket.ts";
export { checkPluginName } from "./plugin-name.ts";
export { type ProbeResult, probeSocket } from "./probe-socket.ts";
export { RecentMap } from "./recent-map.ts";
export { RecentWork } from "./recent-work.ts";
export { RepairPace } from "./repair-pace.ts";
export {
  isNonRetryable,
  isTransient,
  requestedWaitOf,
  retryAfterOf,
  retryPolicies,
} from "./retry.ts";
export { type Runnable, runInOrder } from "./run-in-order.ts";
export { Semaphore } from "./semaphore.ts";
export { SharedWork } from "./shared-work.ts";
export { checkSocketPath, longestSocketPath } from "./socket-path.ts";
export { completed, inTurns, StepMeter, type Steps } from "./steps.ts";
export { systemClock } from "./system-clock.ts";
export { TokenBucket } from "./token-bucket.ts";
export { WakeableSleep } from "./wakeable-sleep.ts";
export { pause, withPauses } from "./with-pauses.ts";
export { WorkQueue } from "./work-queue.ts";
export { createWorkQueueMetrics, type WorkQueueMetrics } from "./work-queue-metrics.ts";
export type { Writable } from "./writable.ts";
