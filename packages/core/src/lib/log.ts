import { errorIdOf, messageOf } from "@nodekeeper/api/errors";
import pino, { type DestinationStream, type Logger as PinoLogger } from "pino";

/**
 * Structured logger: static messages, details under lowerCamelCase keys, errors under `err`, objects as {name,
 * namespace}. `errorId` identifies a problem on which an operator can act; default: the ID of `err`. `log.child({
 * plugin })` returns a scoped logger. The key `logger` names a part of the agent.
 */
export type Logger = Pick<PinoLogger, "debug" | "info" | "warn" | "error"> & {
  child(bindings: Record<string, unknown>): Logger;
};

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Verbosity levels of klog. Errors have none, by which consumers of its JSON recognize them. */
const verbosity: Readonly<Record<string, number>> = { debug: 4, info: 0, warn: 0 };

/**
 * Creates a JSON logger with the keys of Kubernetes components (k8s.io/component-base/logs/json): `ts` (milliseconds
 * since the epoch), `v` (verbosity, not for errors), `msg`, `err` (text), `logger`. Adds `level`, and `errCode` for a
 * NodekeeperError. Writes to stderr by default.
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

/** A logger that discards all messages, for tests and libraries. */
export const silentLogger: Logger = pino({ level: "silent" });

function describeLevel(level: string): object {
  const v = verbosity[level];
  return v === undefined ? { level } : { level, v };
}

// A single line and a code instead of a stack trace: operators act on the message.
function describeError(fields: Record<string, unknown>): Record<string, unknown> {
  const errorId = fields.errorId ?? errorIdOf(fields.err);
  const withId = errorId === undefined ? fields : { ...fields, errorId };
  if (withId.err === undefined) return withId;
  const { code } = (withId.err ?? {}) as { code?: unknown };
  return { ...withId, err: messageOf(withId.err), ...(code === undefined ? {} : { errCode: code }) };
}
