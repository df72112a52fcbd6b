const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

// Units by age. A second unit is shown only where it matters.
const steps: { below: number; unit: [number, string]; rest?: [number, string] }[] = [
  { below: 2 * MINUTE, unit: [SECOND, "s"] },
  { below: 10 * MINUTE, unit: [MINUTE, "m"], rest: [SECOND, "s"] },
  { below: 3 * HOUR, unit: [MINUTE, "m"] },
  { below: 8 * HOUR, unit: [HOUR, "h"], rest: [MINUTE, "m"] },
  { below: 2 * DAY, unit: [HOUR, "h"] },
  { below: 8 * DAY, unit: [DAY, "d"], rest: [HOUR, "h"] },
  { below: 2 * YEAR, unit: [DAY, "d"] },
  { below: 8 * YEAR, unit: [YEAR, "y"], rest: [DAY, "d"] },
];

/** Formats a duration in milliseconds like kubectl: "45s", "5m30s", "3d4h". Negative durations are "0s". */
export function humanDuration(ms: number): string {
  const span = Math.max(ms, 0);
  const { unit, rest } = steps.find(({ below }) => span < below) ?? { unit: [YEAR, "y"] as [number, string] };
  const head = `${Math.floor(span / unit[0])}${unit[1]}`;
  const left = rest ? Math.floor((span % unit[0]) / rest[0]) : 0;
  return rest && left > 0 ? `${head}${left}${rest[1]}` : head;
}
