import pino, { type DestinationStream, type Logger as PinoLogger } from "pino";
import { errorIdOf } from "./errors.ts";

/**
 * Structured logger: static messages, details as lowerCamelCase keys, errors under `err`, objects as {namespace, name}.
 * `errorId` is the ErrorId of what an operator can act on: that of `err`, unless it is given.
 * `log.child({ plugin })` gives a scoped one.
 */
export type Logger = Pick<PinoLogger, "debug" | "info" | "warn" | "error"> & {
  child(bindings: Record<string, unknown>): Logger;
};

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** A JSON logger with the keys operators expect: ts (RFC 3339), v (level), msg, err. Writes to stderr unless given a destination. */
export function createLogger(level: LogLevel, destination?: DestinationStream): PinoLogger {
  return pino(
    {
      level,
      base: null,
      messageKey: "msg",
      errorKey: "err",
      timestamp: () => `,"ts":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ v: label }), log: withErrorId },
      serializers: { err: describeError },
    },
    destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

/** A logger that writes nothing, for tests and libraries. */
export const silentLogger: Logger = pino({ level: "silent" });

// One line and a code instead of a stack: an operator acts on the message; debug has the stack.
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  const cause = error.cause === undefined ? undefined : describeError(error.cause);
  return { message: error.message, ...(code === undefined ? {} : { code }), ...(cause ? { cause } : {}) };
}

function withErrorId(fields: Record<string, unknown>): Record<string, unknown> {
  const errorId = fields.errorId ?? errorIdOf(fields.err);
  return errorId === undefined ? fields : { ...fields, errorId };
}
