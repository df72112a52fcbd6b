import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isMap, isScalar, type Node, type Pair, parseDocument, type YAMLMap } from "yaml";
import { tableOf, withTable } from "./docs/tables.ts";
import { root } from "./programs.ts";

const values = "deploy/helm/nodekeeper/values.yaml";

/**
 * Returns `page`, docs/install.md or the chart's README, with the table of the chart's values. Throws if a value has no
 * comment or the page has no table.
 */
export async function chartValuesPage(page: string): Promise<string> {
  const yaml = parseDocument(await readFile(join(root, values), "utf8"));
  const rows = rowsOf(yaml.contents as YAMLMap);
  return withTable(page, tableOf(["value", "default", "what it does"], rows));
}

/** Of each value its path, "image.repository", its default as JSON, and the comment above it. */
function rowsOf(map: YAMLMap, prefix = ""): string[][] {
  return (map.items as Pair<Node, Node>[]).flatMap((pair) => {
    const path = `${prefix}${isScalar(pair.key) ? pair.key.value : ""}`;
    const about = (pair.key as Node).commentBefore ?? commentOfFirst(map, pair);
    // A map whose comment stands above it is one value, such as resources; another is a group of values.
    const isGroup = isMap(pair.value) && pair.value.items.length > 0 && !isOneValue(path);
    if (isGroup) return rowsOf(pair.value as YAMLMap, `${path}.`);
    if (!about) throw new Error(`${values}: ${path} has no comment`);
    // Its last paragraph: the file has one about itself in front.
    const shown = about
      .split(/\n\s*\n/)
      .at(-1)!
      .trim()
      .replaceAll(/\s*\n\s*/g, " ");
    const initial = JSON.stringify(pair.value?.toJSON() ?? null);
    return [[`\`${path}\``, initial === '""' ? "" : `\`${initial}\``, shown]];
  });
}

// The comment of a map's first key belongs to the map in the parser's tree.
function commentOfFirst(map: YAMLMap, pair: unknown): string | undefined {
  return map.items[0] === pair ? (map.commentBefore ?? undefined) : undefined;
}

function isOneValue(path: string): boolean {
  return [
    "resources",
    "updateStrategy",
    "nodeSelector",
    "dashboard.labels",
    "probes.liveness",
    "probes.readiness",
    "probes.startup",
  ].includes(path);
}
