import { NodekeeperError } from "../errors/index.ts";

// Longest first, so that "ms" is not parsed as "m" followed by "s".
const unitNanos: [unit: string, nanos: bigint][] = [
  ["h", 3_600_000_000_000n],
  ["ms", 1_000_000n],
  ["m", 60_000_000_000n],
  ["us", 1_000n],
  ["µs", 1_000n],
  ["μs", 1_000n],
  ["ns", 1n],
  ["s", 1_000_000_000n],
];
const nanosOf = new Map(unitNanos);
// Each term must have a digit, so that the match is unambiguous and takes linear time.
const term = "(?:(\\d{1,15})(?:\\.(\\d{0,9}))?|\\.(\\d{1,9}))(h|ms|m|us|µs|μs|ns|s)";
const whole = new RegExp(`^([+-]?)((?:${term})+)$`);
const LONGEST_TEXT = 64;

/** The texts that `parseDuration` accepts, for JSON schemas. */
export const durationSchema = {
  type: "string",
  pattern: `^[+-]?((${term})+|0)$`,
  maxLength: LONGEST_TEXT,
} as const;

const NANOS_PER_MS = 1_000_000n;

/**
 * Parses a Go duration ("5s", "200ms", "1h30m", "1.5s", "0") into milliseconds. The result may be fractional. Throws
 * `invalid`.
 */
export function parseDuration(text: string): number {
  const match = text.length <= LONGEST_TEXT ? whole.exec(text) : null;
  if (!match) {
    if (/^[+-]?0$/.test(text)) return 0;
    throw notADuration(text);
  }
  let nanos = 0n;
  for (const [, integer = "0", fraction, point, unit] of match[2]!.matchAll(new RegExp(term, "g"))) {
    const size = nanosOf.get(unit!)!;
    const places = fraction ?? point ?? "";
    nanos += BigInt(integer) * size + (BigInt(places || "0") * size) / 10n ** BigInt(places.length);
  }
  const ms = Number(nanos / NANOS_PER_MS) + Number(nanos % NANOS_PER_MS) / 1e6;
  return match[1] === "-" ? -ms : ms;
}

/**
 * Formats milliseconds as the shortest such duration: "5s", "1m30s", "200ms", "1.5ms", "0s". Fractions of a nanosecond
 * are dropped.
 */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) throw new NodekeeperError("invalid", `${ms} ms can't be written as a duration`);
  const nanos =
    BigInt(Math.trunc(Math.abs(ms))) * NANOS_PER_MS + BigInt(Math.trunc((Math.abs(ms) % 1) * 1e6));
  if (nanos === 0n) return "0s";
  const sign = ms < 0 ? "-" : "";
  if (nanos < 1_000_000_000n) return `${sign}${decimal(nanos, NANOS_PER_MS)}ms`;
  const hours = nanos / 3_600_000_000_000n;
  const minutes = (nanos / 60_000_000_000n) % 60n;
  const seconds = nanos % 60_000_000_000n;
  const parts = [
    hours > 0n ? `${hours}h` : "",
    minutes > 0n ? `${minutes}m` : "",
    seconds > 0n ? `${decimal(seconds, 1_000_000_000n)}s` : "",
  ];
  return sign + parts.join("");
}

function decimal(value: bigint, unit: bigint): string {
  const fraction = String(value % unit)
    .padStart(String(unit).length - 1, "0")
    .replace(/0+$/, "");
  return fraction === "" ? `${value / unit}` : `${value / unit}.${fraction}`;
}

function notADuration(text: string): NodekeeperError {
  const given = JSON.stringify(text.slice(0, LONGEST_TEXT));
  return new NodekeeperError("invalid", `${given} is not a duration such as "5s", "200ms" or "1h30m"`);
}
