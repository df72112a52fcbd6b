const TIME = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Returns what was expected if the text is not a valid metav1.Time: an RFC 3339 time with any fraction of a second and
 * any offset. `Date.parse` accepts more: "2026", "Nov 22 2026", the 30th of February.
 */
export function unlessTime(text: string): string | undefined {
  const [, day] = TIME.exec(text) ?? [];
  const isTime = day !== undefined && !Number.isNaN(Date.parse(text)) && isDay(day);
  return isTime ? undefined : "a time as of RFC 3339";
}

/** The same for metav1.MicroTime, which requires six fractional digits (micro_time.go). */
export function unlessMicroTime(text: string): string | undefined {
  const isMicroTime = unlessTime(text) === undefined && /\d\.\d{6}(Z|[+-])/.test(text);
  return isMicroTime ? undefined : "a time as of RFC 3339 with six digits of a second";
}

function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
}
