import { readFileSync } from "node:fs";
import { join } from "node:path";
import { events } from "@nodekeeper/api/archive";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { attributeTexts } from "../packages/agent/src/archive/records/attributes.ts";

const deploy = join(import.meta.dirname, "../deploy");
const read = (path: string) => readFileSync(join(deploy, path), "utf8");

interface Panel {
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; queryType: string; legendFormat?: string }[];
}
const panels: Panel[] = JSON.parse(read("helm/nodekeeper/files/archive-dashboard.json")).panels;
const saved: { name: string; query: string }[] = parse(read("archive-queries.yaml")).queries;
const queries = [
  ...saved.map(({ name, query }) => [name, query] as const),
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat = "" }) => [title, `${expr} ${legendFormat}`] as const),
  ),
];

const ofResources = ["service.name", "k8s.node.name", "k8s.node.uid", "k8s.cluster.name"];
const known = new Set([...Object.keys(attributeTexts), ...ofResources, ...Object.keys(events)]);

/** Attributes and events that a query names. */
function namesIn(query: string): string[] {
  return query.match(/\b(?:k8s|nodekeeper|service)\.[a-z.]*[a-z]\b/g) ?? [];
}

// test/e2e/archive-query.e2e.test.ts asks a real VictoriaLogs.
describe("saved queries and the dashboard of the archive", () => {
  it.each(queries)(
    "%s names only attributes and events that exist, and only nodekeeper's records",
    (_, query) => {
      expect(namesIn(query).filter((name) => !known.has(name))).toEqual([]);
      expect(query).toContain('{"service.name"="nodekeeper"');
    },
  );

  it.each(queries)("%s counts no record twice", (_, query) => {
    expect(query).not.toMatch(/\bcount\(\)/);
    expect(query).toMatch(/count_uniq\(|\| uniq by \(|min\(_time\)/);
  });

  it("the dashboard's panels do not overlap", () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });

  it("the dashboard's query types fit their panels", () => {
    const typeOf = { stat: "stats", bargauge: "stats", timeseries: "statsRange", logs: "instant" };
    for (const { title, type, targets = [] } of panels)
      for (const { queryType } of targets)
        expect([title, queryType]).toEqual([title, typeOf[type as keyof typeof typeOf]]);
  });
});
