import { join } from "node:path";
import { tableOf } from "../../scripts/docs/tables.ts";
import { type Result, type Summary, summaryOf } from "./results.ts";
import type { Peer, Row } from "./rows.ts";

/** What the page is made of: rows, and results by the name of their row. */
export interface Measured {
  rows: Readonly<Record<string, Row>>;
  results: ReadonlyMap<string, Result>;
}

/** The sections of docs/performance.md. Throws if a result has no row. */
export function performanceSections({ rows, results }: Measured): string[] {
  const stray = [...results.keys()].filter((name) => !(name in rows));
  if (stray.length > 0) throw new Error(`bench/results has no row for ${stray.join(", ")}`);
  const measured = measuredRows({ rows, results });
  const table = measured.map(({ row, summary, name }) => [
    `[${row.title}](#${name})`,
    row.unit,
    figure(summary.agent),
    figure(summary.peer),
    `${summary.ratio.toFixed(2)} (${summary.min.toFixed(2)} to ${summary.max.toFixed(2)})`,
    goalOf(row, summary),
  ]);
  return [
    `## Ratios\n\n${tableOf(["workload", "unit", "Nodekeeper", "Go", "ratio: median (least to greatest)", "goal"], table)}\n`,
    ...measured.map(section),
    ...unmeasuredSection(
      Object.entries(rows).flatMap(([name, { title }]) => (results.has(name) ? [] : [`- ${title}`])),
    ),
  ];
}

function unmeasuredSection(titles: readonly string[]): string[] {
  if (titles.length === 0) return [];
  return [
    `## Not measured here yet\n\n\`npm run bench:peers\` has not been run for:\n\n${titles.join("\n")}\n`,
  ];
}

/** The goals of a row, and whether they are met; empty if it has none. */
function goalOf({ goal, limit, unit }: Row, { agent, ratio }: Summary): string {
  const verdict = (isMet: boolean) => (isMet ? "met" : "missed");
  return [
    ...(goal === undefined ? [] : [`${goal}, ${verdict(ratio <= goal)}`]),
    ...(limit === undefined ? [] : [`${limit} ${unit}, ${verdict(agent <= limit)}`]),
  ].join("; ");
}

interface MeasuredRow {
  name: string;
  row: Row;
  result: Result;
  summary: Summary;
}

function measuredRows({ rows, results }: Pick<Measured, "rows" | "results">): MeasuredRow[] {
  return Object.entries(rows).flatMap(([name, row]) => {
    const result = results.get(name);
    return result ? [{ name, row, result, summary: summaryOf(result.pairs) }] : [];
  });
}

function section({ name, row, result: { measured, pairs } }: MeasuredRow): string {
  const { date, commit, machine, versions, load, command } = measured;
  const runs = pairs.map(({ agent, peer }, at) => [
    String(at + 1),
    figure(agent),
    figure(peer),
    (agent / peer).toFixed(2),
  ]);
  return `## ${name}

${row.title}: ${row.ours} beside ${peerOf(row.peer)}. Measured on ${date} at commit ${commit} on
${machine}, ${versions}, load average ${load}:

\`\`\`sh run=repository
${command}
\`\`\`

${tableOf(["pair", `Nodekeeper, ${row.unit}`, `Go, ${row.unit}`, "ratio"], runs)}

Not the same on both sides:

${row.differences.map((difference) => `- ${difference}`).join("\n")}
`;
}

function peerOf({ directory, program = ".", module, upstream }: Peer): string {
  const package_ = join("bench/peers", directory, program);
  return program.startsWith(".")
    ? `\`${package_}\`, which imports\n\`${module}/${upstream}\``
    : `\`${program}\`,\nbuilt by \`bench/peers/${directory}/go.mod\``;
}

const WIDTH = 760;
const LABEL = 400;
const STEP = 30;
const TOP = 34;
const TICKS = [0.01, 0.1, 0.5, 1, 2, 4];
const STYLE = `text{font:13px sans-serif;fill:#24292f}.axis{stroke:#8c959f;stroke-dasharray:2 4}.one{stroke:#57606a}.range{stroke:#0969da;stroke-width:3}.median{fill:#0969da}.goal{stroke:#1a7f37;stroke-width:3}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#6e7681}.one{stroke:#c9d1d9}.range{stroke:#58a6ff}.median{fill:#58a6ff}.goal{stroke:#3fb950}}`;

/** A picture of the ratios: for each row the median, the range of the pairs, and the goal, on a logarithmic axis. */
export function performancePicture(measured: Pick<Measured, "rows" | "results">): string {
  const all = measuredRows(measured);
  const bottom = TOP + all.length * STEP;
  const axis = TICKS.map(
    (tick) =>
      `<line class="${tick === 1 ? "one" : "axis"}" x1="${x(tick)}" y1="${TOP - 8}" x2="${x(tick)}" y2="${bottom}"/>` +
      `<text x="${x(tick)}" y="16" text-anchor="middle">${tick}</text>`,
  );
  const bars = all.map(({ row, summary }, at) => {
    const y = TOP + at * STEP + 12;
    return (
      `<text x="0" y="${y + 5}">${escaped(row.title.split(",").slice(0, 2).join(","))}</text>` +
      `<line class="range" x1="${x(summary.min)}" y1="${y}" x2="${x(summary.max)}" y2="${y}"/>` +
      `<circle class="median" cx="${x(summary.ratio)}" cy="${y}" r="6"/>` +
      (row.goal === undefined
        ? ""
        : `<line class="goal" x1="${x(row.goal)}" y1="${y - 10}" x2="${x(row.goal)}" y2="${y + 10}"/>`)
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 8}" role="img" aria-label="Ratios of Nodekeeper to Go programs">
<style>${STYLE}</style>
${[...axis, ...bars].join("\n")}
</svg>
`;
}

/** Ratios beyond the axis are drawn at its end. */
function x(ratio: number): number {
  const [low, high] = [Math.log(TICKS[0]!), Math.log(TICKS.at(-1)!)];
  const share = Math.min(Math.max((Math.log(ratio) - low) / (high - low), 0), 1);
  return Math.round(LABEL + share * (WIDTH - LABEL - 20));
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function figure(value: number): string {
  return value >= 1_000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));
}
