import {
  type ArchivedEviction,
  countEvictions,
  type EvictionGroup,
  type EvictionKey,
  evictionKeys,
  isEvicted,
} from "@nodekeeper/api/archive";
import { plainText } from "@nodekeeper/api/text";
import { counted, outcomeText, timeOf } from "@nodekeeper/api/wording";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Options } from "../commands/context.ts";
import { sinceOf } from "../eviction/record-source.ts";
import { type Colour, type Output, printAs, table } from "../output.ts";
import type { Archive, ArchivedEvictions } from "./archive.ts";

const MOST_NOTES = 20;
const colours: Readonly<Record<ReturnType<typeof isEvicted>, Colour>> = {
  evicted: "red",
  notEvicted: "green",
  unknown: "yellow",
};

/** `kubectl nodekeeper evictions`. Throws `invalid` without an archive: only it has the records of all nodes. */
export async function evictionsCommand(
  archive: Archive | undefined,
  { node, namespace, allNamespaces, since: text, by, output: format }: Options,
  output: Output,
  now: number,
): Promise<void> {
  if (!archive)
    throw new NodekeeperError("invalid", "evictions are read from the archive: specify --archive");
  const keys = by === undefined ? undefined : keysIn(by);
  const since = sinceOf(text, now);
  const isAll = namespace === undefined || allNamespaces;
  const where: Record<string, string> = isAll ? {} : { "k8s.namespace.name": namespace };
  const found = await archive.evictions({ node, where }, since);
  const value = keys
    ? { ...found, evictions: undefined, by: keys, groups: countEvictions(found.evictions, keys) }
    : found;
  printAs(output, format, { since, ...value }, () =>
    [
      keys ? countTable(countEvictions(found.evictions, keys), keys, output) : list(found.evictions, output),
      found.evictions.length > 0 ? "\n" : "",
      ...footer(found, since).map((line) => `${plainText(line, 500)}\n`),
    ].join(""),
  );
}

function keysIn(text: string): EvictionKey[] {
  const words = text.split(",").map((word) => word.trim());
  const wrong = words.find((word) => !evictionKeys.some((key) => key === word));
  if (wrong === undefined) return words as EvictionKey[];
  const known = evictionKeys.join(", ");
  throw new NodekeeperError("invalid", `--by: "${plainText(wrong, 60)}" is none of ${known}`);
}

function countTable(groups: readonly EvictionGroup[], keys: readonly EvictionKey[], output: Output): string {
  if (groups.length === 0) return "";
  const headings = [...keys.map((key) => key.toUpperCase()), "EVICTED", "NOT EVICTED", "UNKNOWN"];
  const rows = groups.map(({ values, evicted, notEvicted, unknown }) => [
    ...values,
    ...[evicted, notEvicted, unknown].map(String),
  ]);
  return table(output, headings, rows);
}

function list(evictions: readonly ArchivedEviction[], output: Output): string {
  if (evictions.length === 0) return "";
  const headings = ["SELECTED", "NODE", "POD", "OWNER", "PLUGIN", "OUTCOME", "REASON"];
  const rows = evictions.map(({ at, node, namespace, name, owner, plugin, outcome, reason }) => [
    timeOf(at),
    node,
    `${namespace}/${name}`,
    owner || "-",
    plugin || "-",
    outcome ? outcomeText(outcome) : "no outcome archived",
    reason || "the selection is not archived",
  ]);
  return table(output, headings, rows, (row, column) =>
    column === 5 ? colours[isEvicted(evictions[row]!)] : undefined,
  );
}

function footer({ archive, evictions, notes }: ArchivedEvictions, since: number): string[] {
  const count = (what: ReturnType<typeof isEvicted>) =>
    evictions.filter((one) => isEvicted(one) === what).length;
  const nodes = new Set(evictions.map(({ cluster, node }) => `${cluster}/${node}`)).size;
  const clusters = [...new Set(evictions.map(({ cluster }) => cluster || "(none)"))].sort();
  const ofClusters = clusters.length > 1 ? ` of the clusters ${clusters.join(", ")}` : "";
  const where = evictions.length === 0 ? "" : ` on ${counted(nodes, "node")}${ofClusters}`;
  const parts = [`${count("evicted")} evicted`, `${count("notEvicted")} not evicted`];
  const unknown = count("unknown");
  if (unknown > 0) parts.push(`${unknown} whose end is not known`);
  const more = notes.length > MOST_NOTES ? [`${notes.length - MOST_NOTES} more notes: use -o json.`] : [];
  return [
    `${counted(evictions.length, "pod")} selected since ${timeOf(since)}${where}: ${parts.join(", ")}.`,
    `Answered by the archive ${archive}.`,
    ...notes.slice(0, MOST_NOTES),
    ...more,
  ];
}
