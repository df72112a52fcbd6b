export { abortable, childScope, deadlineScope, type ScopedSignal, stopped, withDeadline } from "./abort.ts";
export { Backoff, type BackoffOptions, delayAfter } from "./backoff.ts";
export { formatByteSize, parseByteSize } from "./byte-size.ts";
export { type Clock, systemClock, type Timer } from "./clock.ts";
export { formatDuration, parseDuration } from "./duration.ts";
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
export { checkPluginName } from "./plugin-name.ts";
export { type ProbeResult, probeSocket } from "./probe-socket.ts";
export {
  addQuantities,
  compareQuantities,
  equalQuantities,
  formatQuantity,
  isQuantity,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityOf,
  subtractQuantities,
  wholeUnits,
} from "./quantity.ts";
export { quote } from "./quote.ts";
export { type RunInOrderOptions, runInOrder } from "./run-in-order.ts";
export type { Runnable } from "./runnable.ts";
export { checkSocketPath, longestSocketPath } from "./socket-path.ts";
export { TokenBucket, type TokenBucketOptions } from "./token-bucket.ts";
export { pause, withPauses } from "./with-pauses.ts";
export { type KeyHandler, WorkQueue, type WorkQueueOptions } from "./work-queue.ts";
export { createWorkQueueMetrics, type WorkQueueMetrics } from "./work-queue-metrics.ts";
