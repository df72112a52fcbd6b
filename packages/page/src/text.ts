import { nodeNow } from "./node-clock.ts";

/** "12 s", "5 min", "3 h", "2 d". */
export function age(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1_000), 0);
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129_600 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

// Created once, because creation takes longer than a thousand uses. "h23", because otherwise midnight is "24:00:00" in
// some languages.
const CLOCK = new Intl.DateTimeFormat([], { timeStyle: "medium", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat();

/** Formats a time of day, with the date if it is on another day than now. */
export function at(ms: number, now = nodeNow()): string {
  const [time, then] = [new Date(ms), new Date(now)];
  const clock = CLOCK.format(time);
  return time.toDateString() === then.toDateString() ? clock : `${DAY.format(time)} ${clock}`;
}

// Control characters and direction marks: a plugin's name must not rearrange the page.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

// Two names of 253 characters and a slash.
const LONGEST_TEXT = 507;

/** Formats the name of a plugin or pod: invisible characters escaped, truncated to `longest`. */
export function shown(text: string, longest = 253): string {
  const escaped = text.replace(
    INVISIBLE,
    (each) => `\\u${each.codePointAt(0)!.toString(16).padStart(4, "0")}`,
  );
  return escaped.length > longest ? `${escaped.slice(0, longest - 1)}…` : escaped;
}

// A generated name of a pod, which ends with hashes, mostly has fewer.
const LONGEST_NAME = 44;
const NAME_END = 17;
const SHORTEST_MIDDLE = 3;

/** The parts of a name, escaped. `middle` is left out where a long name is cut; empty if it is not cut. */
export interface CutName {
  start: string;
  middle: string;
  end: string;
}

/** Cuts a long "<namespace>/<name>" or "<name>" in the middle. Keeps the namespace and the end of the name. */
export function cutName(text: string): CutName {
  const whole = shown(text, LONGEST_TEXT);
  const nameAt = whole.indexOf("/") + 1;
  const [from, to] = [nameAt + LONGEST_NAME - NAME_END - 1, whole.length - NAME_END];
  if (to - from < SHORTEST_MIDDLE) return { start: whole, middle: "", end: "" };
  return { start: whole.slice(0, from), middle: whole.slice(from, to), end: whole.slice(to) };
}

/** Returns "<namespace>/<name>" of a pod, not escaped; or its UID, if nothing else is known of it. */
export function podName({
  namespace,
  name,
  uid = "",
}: {
  namespace: string;
  name: string;
  uid?: string | undefined;
}): string {
  return name === "" ? `the pod with UID ${uid}` : `${namespace}/${name}`;
}

/**
 * Formats a value with its unit: "3.2 GiB", "94.1 %", "32123". Bytes have three digits, others six: a value beyond its
 * threshold must not read like it.
 */
export function quantity(value: number | null, unit = ""): string {
  if (value === null) return "–";
  if (unit !== "bytes") return `${Number(value.toPrecision(6))}${unit ? ` ${unit}` : ""}`;
  const steps = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(Math.floor(Math.log2(Math.max(value, 1)) / 10), steps.length - 1);
  return `${Number((value / 1024 ** step).toPrecision(3))} ${steps[step]}`;
}
