import type { Outcome } from "./measure.ts";

const columns = ["turn ms", "/livez ms", "before MB", "peak MB", "after MB"];

export function printHead(width: number): void {
  console.log([" ".repeat(width), ...columns].join("  "));
}

export function printRow(width: number, name: string, outcome: Outcome, exceeded: readonly string[]): void {
  const { turnMs, livezMs, rssMb, peakMb, afterMb } = outcome;
  const cells = [turnMs, livezMs, rssMb, peakMb, afterMb].map((value, at) =>
    value.toFixed(0).padStart(columns[at]!.length),
  );
  const note = exceeded.length > 0 ? `  EXCEEDED: ${exceeded.join(", ")}` : "";
  console.log([name.padEnd(width), ...cells].join("  ") + note);
}
