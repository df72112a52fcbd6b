/** Wall milliseconds as all texts have times: "2026-11-21T04:00:10.000Z". */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
