import type { FleetNode } from "@nodekeeper/api/fleet";
import { counted, evictionModes } from "@nodekeeper/api/wording";
import { useEffect } from "preact/hooks";
import { addressOf, goTo } from "../address.ts";
import { Badge } from "../parts/badge.tsx";
import { Table } from "../parts/table.tsx";
import { Age } from "../parts/time.tsx";
import { shown } from "../text.ts";
import type { FleetViewProps } from "./fleet-view-props.ts";
import { NodeLink } from "./links.tsx";
import {
  isOnlyKey,
  listNodes,
  type NodeFilter,
  type NodeSortKey,
  type OnlyKey,
  onlyFilters,
  stateOf,
  totalsOf,
} from "./listed-nodes.ts";

const ROWS = 50;
const LONGEST_TEXT = 253;
const MOST_CONDITIONS = 3;

/** `#/nodes?text=&only=&sort=&page=`: the list of nodes. */
export function NodesView({ fleet, address: { query } }: FleetViewProps) {
  const { nodes, listedAt, archiveProblem } = fleet.state;
  const only = query.get("only") ?? "";
  const filter: NodeFilter = { text: query.get("text") ?? "", only: isOnlyKey(only) ? only : "" };
  const sort = query.get("sort") ?? "";
  const found = listNodes(nodes, filter, sort);
  const pages = Math.max(1, Math.ceil(found.length / ROWS));
  const page = Math.min(Math.max(1, Number(query.get("page")) || 1), pages);
  const rows = found.slice((page - 1) * ROWS, page * ROWS);
  const names = rows.map(({ node }) => node);
  useEffect(() => {
    fleet.shown = names;
  }, [names.join()]);
  const show = (change: Partial<Record<"text" | "only" | "sort" | "page", string>>) => {
    const next = { ...filter, sort, page: "", ...change };
    const kept = Object.entries(next).filter(([, value]) => value !== "");
    goTo(addressOf("nodes", [], Object.fromEntries(kept)), "replace");
  };
  if (listedAt === undefined) return <p role="status">Reading the nodes.</p>;
  return (
    <div class="card">
      <TotalsLine nodes={nodes} />
      {archiveProblem !== undefined && (
        <p class="notice">Nodes that are gone can't be listed: {shown(archiveProblem, 600)}</p>
      )}
      <search>
        <label>
          Find a node by a part of its name, version, condition or problem
          <input
            type="search"
            value={filter.text}
            maxLength={LONGEST_TEXT}
            onInput={({ currentTarget: { value } }) => show({ text: value })}
          />
        </label>
        <fieldset class="tools">
          <legend class="unseen">Only nodes</legend>
          {filtersFor(nodes).map(([key, title]) => (
            <button
              key={key}
              type="button"
              aria-pressed={key === filter.only}
              onClick={() => show({ only: key })}
            >
              {title}
            </button>
          ))}
        </fieldset>
      </search>
      <p class="quiet" role="status">
        {foundText(found.length, nodes, filter)}
      </p>
      {rows.length > 0 && (
        <Table
          label="Nodes"
          columns={columns.map(([title]) => title)}
          sorting={{
            keys: columns.map(([, key]) => key),
            by: sort.replace(/^-/, ""),
            isDescending: sort.startsWith("-"),
            onSort: (key) => show({ sort: key === sort ? `-${key}` : key }),
          }}
          rows={rows.map((node) => ({ key: node.node, cells: cellsOf(node), below: belowOf(node) }))}
        />
      )}
      {pages > 1 && <Pager page={page} pages={pages} onPage={(to) => show({ page: String(to) })} />}
    </div>
  );
}

/** Buttons of filters; that of nodes that are gone only if there are any. */
function filtersFor(nodes: readonly FleetNode[]): (readonly [key: OnlyKey | "", title: string])[] {
  const keys = (Object.keys(onlyFilters) as OnlyKey[]).filter(
    (key) => key !== "gone" || nodes.some(onlyFilters.gone[1]),
  );
  return [["", "All nodes"], ...keys.map((key) => [key, onlyFilters[key][0]] as const)];
}

function foundText(found: number, nodes: readonly FleetNode[], { text, only }: NodeFilter): string {
  const gone = nodes.filter(onlyFilters.gone[1]).length;
  if (text === "" && only === "")
    return `${counted(found, "node")}${gone > 0 ? `, and ${gone} that are gone` : ""}`;
  return `${found} of ${counted(nodes.length, "node")}`;
}

const columns: readonly (readonly [title: string, key: NodeSortKey])[] = [
  ["Node", "node"],
  ["State", "state"],
  ["Mode", "mode"],
  ["Pressure", "pressure"],
  ["Evicted in 1 h", "evicted"],
  ["Plugins", "failing"],
  ["Version", "version"],
  ["Read", "read"],
];

function cellsOf(node: FleetNode) {
  const { reading, archived } = node;
  const { word, tone } = stateOf(node);
  return [
    <NameOf node={node} />,
    <Badge tone={tone}>{word}</Badge>,
    reading && (reading.mode === "off" ? "off" : evictionModes[reading.mode]),
    reading && (reading.conditions.length === 0 ? "none" : <Conditions names={reading.conditions} />),
    reading && evictionsText(reading),
    reading && pluginsText(reading),
    reading && shown(reading.version, 40),
    (reading && <Age since={reading.at} />) ??
      (archived && (
        <>
          last record <Age since={archived.newest} />
        </>
      )),
  ];
}

/** A node's name, with a link to what is known of it. */
function NameOf({ node: { node, hasAgent, archived } }: { node: FleetNode }) {
  if (archived) return <a href={addressOf("explain", [], { node })}>{shown(node)}</a>;
  if (hasAgent) return <NodeLink node={node} />;
  return <span>{shown(node)}</span>;
}

function Conditions({ names }: { names: readonly string[] }) {
  const some = names.slice(0, MOST_CONDITIONS).map((name) => shown(name, 120));
  const more = names.length - some.length;
  return (
    <>
      <Badge tone="warn">{counted(names.length, "condition")}</Badge>{" "}
      <small>
        {some.join(", ")}
        {more > 0 && ` and ${more} more`}
      </small>
    </>
  );
}

type Reading = NonNullable<FleetNode["reading"]>;

function evictionsText({ evicted, dryRunEvicted }: Reading): string {
  return dryRunEvicted === 0 ? String(evicted) : `${evicted}, ${dryRunEvicted} in dry run`;
}

function pluginsText({ plugins, failing, refused }: Reading) {
  if (failing + refused === 0) return String(plugins);
  const parts = [failing > 0 && `${failing} failing`, refused > 0 && `${refused} refused`].filter(Boolean);
  return (
    <>
      {plugins} <Badge tone={failing > 0 ? "bad" : "warn"}>{parts.join(", ")}</Badge>
    </>
  );
}

function belowOf({ hasAgent, reading, problem }: FleetNode) {
  const lines = [
    ...(problem === undefined ? [] : [`No answer: ${problem}`]),
    ...(reading?.problems ?? []).map(
      ({ what, name, message }) => `${what}: ${name}${message ? `: ${message}` : ""}`,
    ),
  ];
  if (!hasAgent || lines.length === 0) return undefined;
  const [first = "", ...rest] = lines.map((line) => shown(line, 400));
  if (rest.length === 0) return <small>{first}</small>;
  return (
    <details>
      <summary>
        <small>
          {first} and {rest.length} more
        </small>
      </summary>
      <ul>
        {rest.map((line) => (
          <li key={line}>
            <small>{line}</small>
          </li>
        ))}
      </ul>
    </details>
  );
}

function TotalsLine({ nodes }: { nodes: readonly FleetNode[] }) {
  const { agents, read, silent, problems, pressure, evicted, versions } = totalsOf(nodes);
  return (
    <p class="totals">
      {read < agents && (
        <span>
          <progress value={read} max={agents} aria-label="Agents read" /> {read} of {counted(agents, "agent")}{" "}
          read
        </span>
      )}
      {(silent > 0 || read === agents) && (
        <span>{silent === 0 ? "all answered" : `${silent} without an answer`}</span>
      )}
      <span>{problems} with problems</span>
      {pressure !== undefined && <span>{pressure} under pressure</span>}
      {evicted !== undefined && <span>{counted(evicted, "eviction")} in the last hour</span>}
      {versions.length > 0 && (
        <span>
          {versions.length === 1 ? "version" : "versions"}{" "}
          {versions.map(([version, count]) => `${shown(version, 40)} on ${count}`).join(", ")}
        </span>
      )}
    </p>
  );
}

function Pager({ page, pages, onPage }: { page: number; pages: number; onPage(page: number): void }) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <button type="button" disabled={page === 1} onClick={() => onPage(page - 1)}>
        Previous {ROWS}
      </button>
      <span>
        Page {page} of {pages}
      </span>
      <button type="button" disabled={page === pages} onClick={() => onPage(page + 1)}>
        Next {ROWS}
      </button>
    </nav>
  );
}
