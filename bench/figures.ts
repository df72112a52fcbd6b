/** One measured figure and what it may be at most. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** Upper bound of the value. Undefined if there is no budget. */
  budget?: number;
}

export function printFigures(figures: readonly Figure[]): void {
  const width = Math.max(...figures.map(({ name }) => name.length));
  for (const { name, value, unit, budget } of figures) {
    const text = `${name.padEnd(width)}  ${format(value).padStart(9)} ${unit.padEnd(9)}`;
    if (budget === undefined) console.log(text.trimEnd());
    else console.log(`${text} at most ${format(budget)}  ${value <= budget ? "ok" : "MISSED"}`);
  }
}

/** The value below which a share of the samples lies; 0 of none. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0;
}

function format(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 1);
}
