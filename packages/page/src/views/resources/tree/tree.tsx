import { useEffect, useRef, useState } from "preact/hooks";
import { useExport } from "../../../export/exports.ts";
import { Icon } from "../../../parts/icon.tsx";
import { shown } from "../../../text.ts";
import type { Change } from "./changes.ts";
import { moveAt, rowsOf, type TreeNode, type TreeRow } from "./tree-node.ts";

// More rows are not drawn: to see them, other parts are closed.
const MOST_ROWS = 1_000;

interface TreeProps {
  root: TreeNode;
  open: ReadonlySet<string>;
  /** Key of the selected node. Empty if none is selected. */
  chosen: string;
  changes: ReadonlyMap<string, Change>;
  onToggle(key: string, isOpen: boolean): void;
  onChoose(key: string): void;
}

/**
 * A tree of rows, following the tree view pattern of the ARIA Authoring Practices Guide. Only one row is in the tab
 * order; the others are reached by keys.
 */
export function Tree({ root, open, chosen, changes, onToggle, onChoose }: TreeProps) {
  const list = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(chosen);
  const [moved, setMoved] = useState(0);
  const all = rowsOf(root, open);
  const rows = all.slice(0, MOST_ROWS);
  useExport("What is published", () =>
    rows.map(({ level, node: { label, value, note = "", facts = [], pods = [], plugins = [] } }) => ({
      Level: level,
      Name: shown(label, 200),
      Value: shown(value, 1_000),
      Note: shown(note, 1_000),
      Facts: facts.map(([what, text]) => shown(`${what}: ${text}`, 1_000)),
      "Held by": pods.map((pod) => shown(pod)),
      "Reported by": plugins.map((plugin) => shown(plugin)),
    })),
  );
  const at = Math.max(
    rows.findIndex(({ node }) => node.key === active),
    0,
  );
  // After the render, because the row may just have been added.
  useEffect(() => {
    if (moved > 0) list.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }, [moved]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moveAt(rows, at, event.key);
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    if ("open" in move) onToggle(move.open, true);
    else if ("close" in move) onToggle(move.close, false);
    else if ("choose" in move) onChoose(move.choose);
    else {
      setActive(move.to);
      setMoved(moved + 1);
    }
  };
  return (
    <>
      <div ref={list} class="tree" role="tree" aria-label="What is published" onKeyDown={onKeyDown}>
        {rows.map((row, place) => (
          <Row
            key={row.node.key}
            row={row}
            isActive={place === at}
            isChosen={row.node.key === chosen}
            change={changes.get(row.node.key)}
            isChangedInside={row.isOpen === false && isChangedIn(row.node, changes)}
            onToggle={() => onToggle(row.node.key, !row.isOpen)}
            onChoose={() => {
              setActive(row.node.key);
              onChoose(row.node.key);
            }}
          />
        ))}
      </div>
      {all.length > rows.length && (
        <p>{all.length - rows.length} more rows are not drawn: close parts above to see them.</p>
      )}
    </>
  );
}

function isChangedIn({ children }: TreeNode, changes: ReadonlyMap<string, Change>): boolean {
  return changes.size > 0 && children.some((child) => changes.has(child.key) || isChangedIn(child, changes));
}

interface RowProps {
  row: TreeRow;
  isActive: boolean;
  isChosen: boolean;
  change: Change | undefined;
  isChangedInside: boolean;
  onToggle: () => void;
  onChoose: () => void;
}

function Row({ row, isActive, isChosen, change, isChangedInside, onToggle, onChoose }: RowProps) {
  const { node, level, position, count, isOpen } = row;
  const { label, value, note, tone } = node;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    <div
      role="treeitem"
      class={change || isChangedInside ? "changed" : undefined}
      style={{ "--level": level }}
      aria-level={level}
      aria-posinset={position}
      aria-setsize={count}
      aria-expanded={isOpen}
      aria-selected={isChosen}
      tabIndex={isActive ? 0 : -1}
      onClick={onChoose}
    >
      <span
        class="twist"
        aria-hidden="true"
        onClick={(event) => {
          if (isOpen === undefined) return;
          event.stopPropagation();
          onToggle();
        }}
      >
        {isOpen === undefined ? "" : isOpen ? "▾" : "▸"}
      </span>
      <span>
        <span class="label">{shown(label, 200)}</span>{" "}
        <span class="value">
          {tone && (
            <span class={`tone-${tone}`}>
              <Icon name={tone} />{" "}
            </span>
          )}
          {shown(value, 200)}
        </span>{" "}
        {note && <small>{shown(note, 200)}</small>}{" "}
        {(change || isChangedInside) && (
          <small class="mark">◆ {change ? changeText(change) : "changed inside"}</small>
        )}
      </span>
    </div>
  );
}

function changeText({ before }: Change): string {
  if (before === undefined) return "new";
  return before === "" ? "changed" : `was ${shown(before, 60)}`;
}
