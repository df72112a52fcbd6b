import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { podName, shown } from "../../text.ts";
import type { Colours } from "./colours.ts";
import { contextOf, useFrame } from "./draw.ts";
import { drawRows } from "./draw-rows.ts";
import type { Mark } from "./marks.ts";
import type { Row } from "./rows.ts";
import type { Range } from "./scale.ts";
import { Sprites } from "./sprites.ts";

export interface RowsBoxProps {
  rows: readonly Row[];
  range: Range;
  left: number;
  axisPx: number;
  ticks: readonly { at: number }[];
  now: number;
  knownSince: number;
  marks: ReadonlyMap<string, readonly Mark[]>;
  /** The id of the selected container, or the UID of the selected pod. */
  selected: string | undefined;
  expanded: ReadonlySet<string>;
  colours: Colours;
  onRow(row: Row): void;
}

/** Labels are above the bars if there is no space beside them. */
export const isNarrow = (left: number) => left < 100;
export const rowHeightOf = (left: number) => (isNarrow(left) ? 44 : 26);
const LABEL_PX = 20;
// Rows rendered beyond the visible ones, so that the focus can move on.
const OVERSCAN = 3;
// Of a pod's name, these characters are kept where the label is too narrow: they tell the pods of an owner apart.
const NAME_END = 12;
const HIGHEST_PX = 560;

/** The rows of pods: labels as buttons, bars on one canvas. Only visible rows are rendered. */
export function RowsBox(props: RowsBoxProps) {
  const { rows, left, axisPx, expanded } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const [sprites] = useState(() => new Sprites());
  const rowHeight = rowHeightOf(left);
  const total = rows.length * rowHeight;
  const height = Math.min(total, Math.max(Math.min(HIGHEST_PX, globalThis.innerHeight * 0.7), 4 * rowHeight));
  const top = Math.min(scrolled, Math.max(total - height, 0));
  const first = Math.max(Math.floor(top / rowHeight) - OVERSCAN, 0);
  const visible = rows.slice(first, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  useFrame(() => {
    const context = canvas.current && contextOf(canvas.current, left + axisPx, height);
    if (!context) return;
    const labelPx = isNarrow(left) ? LABEL_PX : 0;
    const y = first * rowHeight - top;
    drawRows(context, { ...props, rows: visible, top: y, rowHeight, labelPx, height }, sprites);
  });
  // If there are fewer rows than before, scrolls back to the last.
  useLayoutEffect(() => {
    if (box.current && box.current.scrollTop !== top) box.current.scrollTop = top;
  }, [total, height]);
  useEffect(() => {
    const { current } = box;
    const onScroll = () => setScrolled(current?.scrollTop ?? 0);
    current?.addEventListener("scroll", onScroll, { passive: true });
    return () => current?.removeEventListener("scroll", onScroll);
  }, []);
  return (
    <div ref={box} class="tl-rows" data-row-height={rowHeight} style={{ height: `${height}px` }}>
      <div class="tl-space" style={{ height: `${total}px` }}>
        <div aria-hidden="true">
          <canvas ref={canvas} style={{ height: `${height}px` }} />
        </div>
        <ul>
          {visible.map((row, index) => (
            <RowLabel
              key={row.key}
              row={row}
              y={(first + index) * rowHeight}
              at={first + index + 1}
              of={rows.length}
              width={isNarrow(left) ? left + axisPx : left}
              isExpanded={expanded.has(row.pod.uid)}
              isSelected={props.selected === row.key}
              onRow={props.onRow}
            />
          ))}
        </ul>
      </div>
    </div>
  );
}

interface RowLabelProps {
  row: Row;
  y: number;
  at: number;
  of: number;
  width: number;
  isExpanded: boolean;
  isSelected: boolean;
  onRow(row: Row): void;
}

function RowLabel({ row, y, at, of, width, isExpanded, isSelected, onRow }: RowLabelProps) {
  const { namespace } = row.pod;
  const name = shown(row.pod.name);
  const isPod = row.container === undefined;
  return (
    <li aria-setsize={of} aria-posinset={at} style={{ transform: `translateY(${y}px)`, width: `${width}px` }}>
      <button
        type="button"
        class={`${isPod ? "" : "container"} ${isSelected ? "selected" : ""}`}
        aria-expanded={isPod ? isExpanded : undefined}
        title={isPod ? shown(podName(row.pod), 600) : undefined}
        onClick={() => onRow(row)}
      >
        {isPod ? (
          <>
            <span aria-hidden="true">{isExpanded ? "▾" : "▸"}</span>
            <small>{shown(namespace)}/</small>
            <bdi class="start">{name.slice(0, -NAME_END)}</bdi>
            <bdi>{name.slice(-NAME_END)}</bdi>
          </>
        ) : (
          <bdi>{shown(row.container ?? "")}</bdi>
        )}
      </button>
    </li>
  );
}
