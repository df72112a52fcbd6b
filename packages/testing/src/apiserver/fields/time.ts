const TIME = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Whether a text is a time as of RFC 3339, with any fraction of a second and any offset, which is what the API server takes
 * as a metav1.Time. `Date.parse` alone takes much more: "2026", "Nov 22 2026", the 30th of February.
 */
export function isTime(text: string): boolean {
  const [, day] = TIME.exec(text) ?? [];
  if (day === undefined || Number.isNaN(Date.parse(text))) return false;
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}

/** Whether a time has the six digits of a second that the API server demands of a metav1.MicroTime (micro_time.go). */
export function isMicroTime(time: string): boolean {
  return /\d\.\d{6}(Z|[+-])/.test(time);
}
