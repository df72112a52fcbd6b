import type { NodeDetails } from "@nodekeeper/api/fleet";
import { counted } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { addressOf, goTo } from "../address.ts";
import { Badge } from "../parts/badge.tsx";
import { Section } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { shown } from "../text.ts";
import { type ComparedSection, compareNodes } from "./differences.ts";
import type { FleetViewProps } from "./fleet-view-props.ts";
import { type Asked, useAsked } from "./use-asked.ts";

const LONGEST_VALUE = 600;

/** `#/compare?a=&b=&all=`: what two nodes have in common, and where they differ. */
export function CompareView({ fleet, address: { query } }: FleetViewProps) {
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  const isWhole = query.get("all") === "true";
  const isChosen = a !== "" && b !== "";
  const first = useAsked<NodeDetails>("details", isChosen ? { node: a } : undefined);
  const second = useAsked<NodeDetails>("details", isChosen ? { node: b } : undefined);
  const show = (change: Record<string, string | undefined>) =>
    goTo(
      addressOf("compare", [], {
        a: a || undefined,
        b: b || undefined,
        all: isWhole ? "true" : undefined,
        ...change,
      }),
      "replace",
    );
  const names = fleet.state.nodes.filter(({ hasAgent }) => hasAgent).map(({ node }) => node);
  const sections = first.value && second.value && compareNodes(first.value, second.value);
  return (
    <>
      <div class="card">
        <datalist id="nodes">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div class="tools">
          <NodeInput label="Node" value={a} names={names} onChange={(node) => show({ a: node })} />
          <NodeInput label="compared with" value={b} names={names} onChange={(node) => show({ b: node })} />
          <button
            type="button"
            aria-pressed={isWhole}
            onClick={() => show({ all: isWhole ? undefined : "true" })}
          >
            Also what is equal
          </button>
        </div>
        <p class="quiet" role="status">
          {isChosen ? statusText(sections, first, second) : "Choose two nodes."}
        </p>
        {[first, second].map(
          ({ problem }, at) =>
            problem !== undefined && (
              <p key={at} class="lost" role="alert">
                {shown(at === 0 ? a : b)} can't be read: {shown(problem, 600)}.
              </p>
            ),
        )}
      </div>
      {sections?.map((section) => (
        <Compared key={section.title} section={section} nodes={[a, b]} isWhole={isWhole} />
      ))}
    </>
  );
}

function statusText(
  sections: readonly ComparedSection[] | undefined,
  first: Asked<NodeDetails>,
  second: Asked<NodeDetails>,
) {
  if (sections) return `${counted(differencesIn(sections), "difference")}.`;
  return first.problem === undefined && second.problem === undefined && "Reading both nodes.";
}

function differencesIn(sections: readonly ComparedSection[]): number {
  return sections.reduce((sum, { rows }) => sum + rows.filter(({ differs }) => differs).length, 0);
}

interface InputProps {
  label: string;
  value: string;
  names: readonly string[];
  onChange(node: string): void;
}

/** An input for a node's name. Calls `onChange` once the text is one of `names`. */
function NodeInput({ label, value, names, onChange }: InputProps) {
  const [typed, setTyped] = useState(value);
  const isUnknown = typed !== "" && !names.includes(typed);
  return (
    <label>
      {label}{" "}
      <input
        type="text"
        list="nodes"
        value={typed}
        maxLength={253}
        aria-invalid={isUnknown}
        onInput={({ currentTarget: { value: next } }) => {
          setTyped(next);
          if (names.includes(next)) onChange(next);
        }}
      />
    </label>
  );
}

interface ComparedProps {
  section: ComparedSection;
  nodes: readonly [string, string];
  isWhole: boolean;
}

function Compared({ section: { title, rows }, nodes, isWhole }: ComparedProps) {
  const differing = rows.filter(({ differs }) => differs).length;
  const listed = isWhole ? rows : rows.filter(({ differs }) => differs);
  return (
    <Section title={title} remark={`${counted(differing, "difference")} among ${rows.length}`}>
      {listed.length === 0 ? (
        <p class="quiet">{rows.length === 0 ? "Neither node has any." : "All are equal."}</p>
      ) : (
        <Table
          label={title}
          columns={["Name", ...nodes.map((node) => shown(node, 80)), "Compared"]}
          rows={listed.map(({ name, values, differs }) => ({
            key: name,
            class: differs ? "warning" : undefined,
            cells: [
              shown(name, 300),
              ...values.map((value) =>
                value === undefined ? <i>absent</i> : shown(value || '""', LONGEST_VALUE),
              ),
              differs ? <Badge tone="warn">differs</Badge> : "equal",
            ],
          }))}
        />
      )}
    </Section>
  );
}
