import type { PluginRow } from "./groups.ts";

/** "12 a minute"; below one a minute, "3 since it registered" or "none yet". Undefined if calls are not counted. */
export function rateText({ calls }: Pick<PluginRow, "calls">): string | undefined {
  if (!calls) return undefined;
  const { perMinute, count } = calls;
  if (perMinute >= 1) return `${Number(perMinute.toPrecision(3))} a minute`;
  return count === 0 ? "none yet" : `${count} since it registered`;
}

/** "3 of 400 failed". Undefined if none failed. */
export function failureText({ calls }: Pick<PluginRow, "calls">): string | undefined {
  return calls && calls.failures > 0 ? `${calls.failures} of ${calls.count} failed` : undefined;
}

/** "0.4 ms", "12 ms", "1.2 s". */
export function durationText(ms: number): string {
  return ms >= 1_000 ? `${Number((ms / 1_000).toPrecision(2))} s` : `${Number(ms.toPrecision(2))} ms`;
}

/** Describes a plot of durations in words: "60 calls: last 3 ms, median 2 ms, longest 12 ms, 1 failed." */
export function latencyText(durations: readonly { ms: number; ok: boolean }[]): string {
  const last = durations.at(-1);
  if (!last) return "No calls yet.";
  const sorted = durations.map(({ ms }) => ms).sort((a, b) => a - b);
  const failed = durations.filter(({ ok }) => !ok).length;
  const parts = [
    `last ${durationText(last.ms)}`,
    `median ${durationText(sorted[Math.floor((sorted.length - 1) / 2)]!)}`,
    `longest ${durationText(sorted.at(-1)!)}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${durations.length} ${durations.length === 1 ? "call" : "calls"}: ${parts.join(", ")}.`;
}
