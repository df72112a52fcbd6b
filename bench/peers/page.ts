import { join } from "node:path";
import { tableOf } from "../../scripts/docs/tables.ts";
import { figureText, type Goal, goalsOf, ratiosText, ratioText } from "./goals.ts";
import { type Pair, type Result, type Summary, summaryOf } from "./results.ts";
import type { Peer, Row } from "./row.ts";

/** What the page is made of: rows, results by the name of their row, and why goals are missed. */
export interface Measured {
  rows: Readonly<Record<string, Row>>;
  results: ReadonlyMap<string, Result>;
  explanations: Readonly<Record<string, string | undefined>>;
}

/** The sections of docs/performance.md. Throws if a result has no row. */
export function performanceSections({ rows, results, explanations }: Measured): string[] {
  const stray = [...results.keys()].filter((name) => !(name in rows));
  if (stray.length > 0) throw new Error(`bench/results has no row for ${stray.join(", ")}`);
  const measured = measuredRows({ rows, results });
  const table = measured.map(({ row, summary, name }) => [
    `[${row.title}](#${name})`,
    row.unit,
    figureText(summary.agent),
    peerText(summary),
    ratiosText(summary),
    goalsOf(row, summary).map(verdictOf).join("; "),
  ]);
  return [
    `## Ratios\n\n${tableOf(["workload", "unit", "Nodekeeper", "peer", "ratio: median (least to greatest)", "goal"], table)}\n`,
    ...measured.map((one) => section(one, explanations[one.name])),
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

function verdictOf({ text, isMet }: Goal): string {
  return `${text}, ${isMet ? "met" : "missed"}`;
}

function peerText({ peer, peerAtLeast }: Pick<Pair, "peer" | "peerAtLeast">): string {
  return `${peerAtLeast ? "at least " : ""}${figureText(peer)}`;
}

interface MeasuredRow {
  name: string;
  row: Row;
  result: Result;
  summary: Summary;
}

function measuredRows({ rows, results }: Omit<Measured, "explanations">): MeasuredRow[] {
  return Object.entries(rows).flatMap(([name, row]) => {
    const result = results.get(name);
    return result ? [{ name, row, result, summary: summaryOf(result.pairs) }] : [];
  });
}

function section({ name, row, result, summary }: MeasuredRow, explanation: string | undefined): string {
  const { date, commit, machine, versions, load, command } = result.measured;
  const runs = result.pairs.map((pair, at) => [
    String(at + 1),
    figureText(pair.agent),
    peerText(pair),
    `${pair.peerAtLeast ? "at most " : ""}${ratioText(pair.agent / pair.peer)}`,
  ]);
  const goals = goalsOf(row, summary);
  // That of a goal which is met again is out of date.
  const isExplained = explanation !== undefined && !(goals.length > 0 && goals.every(({ isMet }) => isMet));
  return `## ${name}

${row.title}: ${row.ours} beside ${peerOf(row.peer)}. Measured on ${date} at commit ${commit} on
${machine}, ${versions}, load average ${load}:

\`\`\`sh run=repository
${command}
\`\`\`

${tableOf(["pair", `Nodekeeper, ${row.unit}`, `peer, ${row.unit}`, "ratio"], runs)}

${isExplained ? `Why: ${explanation}\n\n` : ""}Not the same on both sides:

${row.differences.map((difference) => `- ${difference}`).join("\n")}
`;
}

function peerOf(peer: Peer): string {
  if (peer === "empty process") return "an empty process\nof Node";
  const { directory, program = ".", module, upstream } = peer;
  const package_ = join("bench/peers", directory, program);
  return program.startsWith(".")
    ? `\`${package_}\`, which imports\n\`${module}/${upstream}\``
    : `\`${program}\`,\nbuilt by \`bench/peers/${directory}/go.mod\``;
}

const WIDTH = 760;
const LABEL = 220;
const STEP = 30;
const TOP = 34;
const TICKS = [0.001, 0.01, 0.1, 0.5, 1, 2, 4, 10, 30];
const STYLE = `text{font:13px sans-serif;fill:#24292f}.axis{stroke:#8c959f;stroke-dasharray:2 4}.one{stroke:#57606a}.range{stroke:#0969da;stroke-width:3}.median{fill:#0969da}.goal{stroke:#1a7f37;stroke-width:3}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#6e7681}.one{stroke:#c9d1d9}.range{stroke:#58a6ff}.median{fill:#58a6ff}.goal{stroke:#3fb950}}`;

/** A picture of the ratios: for each row the median, the range of the pairs, and the goal, on a logarithmic axis. */
export function performancePicture(measured: Omit<Measured, "explanations">): string {
  const all = measuredRows(measured);
  const bottom = TOP + all.length * STEP;
  const axis = TICKS.map(
    (tick) =>
      `<line class="${tick === 1 ? "one" : "axis"}" x1="${x(tick)}" y1="${TOP - 8}" x2="${x(tick)}" y2="${bottom}"/>` +
      `<text x="${x(tick)}" y="16" text-anchor="middle">${tick}</text>`,
  );
  const bars = all.map(({ name, row, summary }, at) => {
    const y = TOP + at * STEP + 12;
    return (
      `<text x="0" y="${y + 5}">${name}</text>` +
      `<line class="range" x1="${x(summary.min)}" y1="${y}" x2="${x(summary.max)}" y2="${y}"/>` +
      `<circle class="median" cx="${x(summary.ratio)}" cy="${y}" r="6"/>` +
      goalRatios(row, summary)
        .map((goal) => `<line class="goal" x1="${x(goal)}" y1="${y - 10}" x2="${x(goal)}" y2="${y + 10}"/>`)
        .join("")
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 8}" role="img" aria-label="Ratios of Nodekeeper to its peers">
<style>${STYLE}</style>
${[...axis, ...bars].join("\n")}
</svg>
`;
}

// A limit of the agent's figure becomes a ratio by the peer's median.
function goalRatios({ goal, limit }: Row, { peer }: Summary): number[] {
  return [goal, limit === undefined ? undefined : limit / peer].filter((ratio) => ratio !== undefined);
}

/** Ratios beyond the axis are drawn at its end. */
function x(ratio: number): number {
  const [low, high] = [Math.log(TICKS[0]!), Math.log(TICKS.at(-1)!)];
  const share = Math.min(Math.max((Math.log(ratio) - low) / (high - low), 0), 1);
  return Math.round(LABEL + share * (WIDTH - LABEL - 20));
}
