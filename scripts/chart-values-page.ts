// The table of the chart's values in docs/install.md, made of values.yaml and its comments.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isMap, isScalar, type Node, type Pair, parseDocument, type YAMLMap } from "yaml";
import { root } from "./run-command.ts";

/** Where the page is. */
export const CHART_VALUES_PAGE = "docs/install.md";
const values = "deploy/helm/nodekeeper/values.yaml";

interface ChartValue {
  /** "image.repository" */
  path: string;
  /** As JSON. */
  initial: string;
  /** The comment above it. */
  about: string;
}

/** The page with the table that values.yaml gives. Throws where a value has no comment, or the page no table. */
export async function chartValuesPage(): Promise<string> {
  const [text, yaml] = await Promise.all(
    [CHART_VALUES_PAGE, values].map((file) => readFile(join(root, file), "utf8")),
  );
  const rows = valuesOf(parseDocument(yaml!).contents as YAMLMap).map(
    ({ path, initial, about }) => `| \`${path}\` | ${initial === '""' ? "" : `\`${initial}\``} | ${about} |`,
  );
  const table = ["| value | default | what it does |", "|---|---|---|", ...rows].join("\n");
  const pattern = /\| value \| default [\s\S]*?(?=\n\n|\n?$)/;
  if (!pattern.test(text!)) throw new Error(`${CHART_VALUES_PAGE} has no table of values`);
  return text!.replace(pattern, () => table);
}

function valuesOf(map: YAMLMap, prefix = ""): ChartValue[] {
  return (map.items as Pair<Node, Node>[]).flatMap((pair) => {
    const path = `${prefix}${isScalar(pair.key) ? pair.key.value : ""}`;
    const about = (pair.key as Node).commentBefore ?? commentOfFirst(map, pair);
    // A map whose comment stands above it is one value, such as resources; another is a group of values.
    const isGroup = isMap(pair.value) && pair.value.items.length > 0 && !isOneValue(path);
    if (isGroup) return valuesOf(pair.value as YAMLMap, `${path}.`);
    if (!about) throw new Error(`${values}: ${path} has no comment`);
    // Its last paragraph: the file has one about itself in front.
    const lines = about
      .split(/\n\s*\n/)
      .at(-1)!
      .split("\n");
    const shown = lines.map((line) => line.trim()).join(" ");
    return [{ path, initial: JSON.stringify(pair.value?.toJSON() ?? null), about: shown }];
  });
}

// The comment of a map's first key belongs to the map in the parser's tree.
function commentOfFirst(map: YAMLMap, pair: unknown): string | undefined {
  return map.items[0] === pair ? (map.commentBefore ?? undefined) : undefined;
}

function isOneValue(path: string): boolean {
  return ["resources", "updateStrategy", "nodeSelector", "dashboard.labels"].includes(path);
}
