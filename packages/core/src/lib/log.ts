import pino, { type DestinationStream, type Logger as PinoLogger } from "pino";
import { errorIdOf, messageOf } from "./errors.ts";

/**
 * Structured logger: static messages, details as lowerCamelCase keys, errors under `err`, objects as {name, namespace}.
 * `errorId` is the ErrorId of what an operator can act on: that of `err`, unless it is given.
 * `log.child({ plugin })` gives a scoped one; `logger` is the name of a part of the agent.
 */
export type Logger = Pick<PinoLogger, "debug" | "info" | "warn" | "error"> & {
  child(bindings: Record<string, unknown>): Logger;
};

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Verbosity as klog counts it. Errors have none: that is how consumers of its JSON distinguish them. */
const verbosity: Readonly<Record<string, number>> = { debug: 4, info: 0, warn: 0 };

/**
 * A JSON logger with the keys of Kubernetes' components (k8s.io/component-base/logs/json): `ts` (milliseconds since the epoch),
 * `v` (verbosity, not for errors), `msg`, `err` (text), `logger`. Beside them `level`, and `errCode` for an error of ours.
 * Writes to stderr unless given a destination.
 */
export function createLogger(level: LogLevel, destination?: DestinationStream): PinoLogger {
  return pino(
    {
      level,
      base: null,
      messageKey: "msg",
      errorKey: "err",
      timestamp: () => `,"ts":${Date.now()}`,
      formatters: { level: describeLevel, log: describeError },
    },
    destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

/** A logger that writes nothing, for tests and libraries. */
export const silentLogger: Logger = pino({ level: "silent" });

function describeLevel(level: string): object {
  const v = verbosity[level];
  return v === undefined ? { level } : { level, v };
}

// One line and a code instead of a stack: an operator acts on the message.
function describeError(fields: Record<string, unknown>): Record<string, unknown> {
  const errorId = fields.errorId ?? errorIdOf(fields.err);
  const withId = errorId === undefined ? fields : { ...fields, errorId };
  if (withId.err === undefined) return withId;
  const { code } = (withId.err ?? {}) as { code?: unknown };
  return { ...withId, err: messageOf(withId.err), ...(code === undefined ? {} : { errCode: code }) };
}
