import { recordedArchive, shownTrace } from "../test/page/support/recorded-archive.ts";

const [WIDTH, LABEL, ROW, TOP] = [760, 130, 30, 34];
const STYLE =
  "text{font:13px sans-serif;fill:#24292f}.axis{stroke:#8c959f;stroke-dasharray:2 4}rect{fill:#0969da}.whole{fill:#8c959f}.step{fill:#1a7f37}\n@media (prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#6e7681}rect{fill:#58a6ff}.whole{fill:#6e7681}.step{fill:#3fb950}}";

/** docs/images/archive-trace.svg: the spans of an eviction that an agent exported, and its steps. */
export function traceImage(): string {
  const spans = shownTrace(recordedArchive());
  const [{ from, to, attributes, events }] = spans;
  const x = (at: number) => Math.round(LABEL + ((at - from) / (to - from)) * (WIDTH - LABEL - 40));
  const bottom = TOP + spans.length * ROW;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = from + share * (to - from);
    return `<line class="axis" x1="${x(at)}" y1="24" x2="${x(at)}" y2="${bottom}"/><text x="${x(at)}" y="16" text-anchor="middle">${seconds(at - from)}</text>`;
  });
  const bars = spans.map((span, row) => {
    const y = TOP + row * ROW;
    const width = Math.max(x(span.to) - x(span.from), 2);
    return `<text x="0" y="${y + 14}">${escaped(span.name)}</text><rect${row === 0 ? ' class="whole"' : ""} x="${x(span.from)}" y="${y}" width="${width}" height="18"><title>${escaped(span.name)}: ${seconds(span.to - span.from)}</title></rect>`;
  });
  const steps = events.map(({ at, name }, row) => {
    const y = bottom + 24 + row * 22;
    return `<circle class="step" cx="${x(at)}" cy="${TOP + 9}" r="4"/><text x="0" y="${y}">${seconds(at - from)}</text><text x="${LABEL}" y="${y}">${escaped(name)}</text>`;
  });
  const title = `Trace of the eviction of ${attributes["k8s.namespace.name"]}/${attributes["k8s.pod.name"]}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 20 + events.length * 22}" role="img" aria-label="${escaped(title)}">
<style>${STYLE}</style>
${[...ticks, ...bars, ...steps].join("\n")}
</svg>
`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
