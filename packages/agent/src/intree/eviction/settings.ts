/**
 * Returns a grace period in whole seconds; null, set as 0, for that of the pod spec. Never returns 0, which would kill
 * the pod immediately.
 */
export function graceSeconds(ms: number): number | null {
  return ms === 0 ? null : Math.max(1, Math.round(ms / 1000));
}

/** Splits "name=value" at the last "=". */
export function pairOf(text: string): [name: string, value: string] {
  const at = text.lastIndexOf("=");
  return [text.slice(0, at), text.slice(at + 1)];
}
