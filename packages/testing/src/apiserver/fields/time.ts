const TIME = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * What a text should have been where the API server does not take it as a metav1.Time: a time as of RFC 3339, with any
 * fraction of a second and any offset. `Date.parse` alone takes much more: "2026", "Nov 22 2026", the 30th of February.
 */
export function unlessTime(text: string): string | undefined {
  const [, day] = TIME.exec(text) ?? [];
  const isTime = day !== undefined && !Number.isNaN(Date.parse(text)) && isDay(day);
  return isTime ? undefined : "a time as of RFC 3339";
}

/** The same of a metav1.MicroTime, of which the API server demands six digits of a second (micro_time.go). */
export function unlessMicroTime(text: string): string | undefined {
  const isMicroTime = unlessTime(text) === undefined && /\d\.\d{6}(Z|[+-])/.test(text);
  return isMicroTime ? undefined : "a time as of RFC 3339 with six digits of a second";
}

function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
}
