import type { ComponentChildren } from "preact";
import { Fragment } from "preact";
import { useRef } from "preact/hooks";
import { type Row, useExport } from "../export/exports.ts";
import { rowsOfTable } from "../export/shown-rows.ts";
import { hasShortWords } from "./short-words.ts";

export interface TableRow {
  key: string | number;
  /** One per column; the first names the row. Undefined if there is nothing to show. */
  cells: readonly ComponentChildren[];
  /** "failed", "warning", or a class of the view. */
  class?: string | undefined;
  /** Shown below the row, across its whole width. */
  below?: ComponentChildren;
  /** What an export has in addition to the cells. */
  more?: Row | undefined;
}

export interface Sorting {
  /** The keys of the columns, in their order; undefined for one that is not sortable. */
  keys: readonly (string | undefined)[];
  by: string;
  isDescending: boolean;
  onSort(key: string): void;
}

interface Props {
  /** Describes the table for screen readers; not shown. Up to the first comma or semicolon, its name in an export. */
  label: string;
  columns: readonly string[];
  rows: readonly TableRow[];
  /** How its rows are sorted, and what a click on a column's title does. Columns without a key are not sortable. */
  sorting?: Sorting;
  /** Has few narrow columns, so it remains a table on a narrow screen. */
  isNarrow?: boolean;
}

/** A table that can be exported as shown. On a narrow screen, each row becomes a block with the column titles. */
export function Table({ label, columns, rows, sorting, isNarrow = false }: Props) {
  const table = useRef<HTMLTableElement>(null);
  useExport(label.split(/[,;]/, 1)[0], () =>
    table.current ? rowsOfTable(table.current).map((row, at) => ({ ...row, ...rows[at]?.more })) : [],
  );
  return (
    <table ref={table} class={isNarrow ? "table narrow" : "table"}>
      <caption class="unseen">{label}</caption>
      <thead>
        <tr>
          {columns.map((title, index) => (
            <th
              key={index}
              scope="col"
              class={hasShortWords(title) ? "short" : undefined}
              aria-sort={sortOf(sorting, index)}
            >
              <Title title={title} sortKey={sorting?.keys[index]} sorting={sorting} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells, class: kind, below }) => (
          <Fragment key={key}>
            <tr class={kind}>
              {columns.map((title, index) => (
                <Cell key={index} title={title} content={cells[index]} isHead={index === 0} />
              ))}
            </tr>
            {below && (
              <tr class="below">
                <td colSpan={columns.length}>{below}</td>
              </tr>
            )}
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

function sortOf(sorting: Sorting | undefined, index: number) {
  if (!sorting || sorting.keys[index] !== sorting.by) return undefined;
  return sorting.isDescending ? "descending" : "ascending";
}

interface TitleProps {
  title: string;
  sortKey: string | undefined;
  sorting: Sorting | undefined;
}

function Title({ title, sortKey, sorting }: TitleProps) {
  if (!sorting || sortKey === undefined) return <>{title}</>;
  return (
    <button type="button" onClick={() => sorting.onSort(sortKey)}>
      {title}
      <span aria-hidden="true">{sorting.by !== sortKey ? "" : sorting.isDescending ? " ▼" : " ▲"}</span>
    </button>
  );
}

interface CellProps {
  title: string;
  content: ComponentChildren;
  isHead: boolean;
}

function Cell({ title, content, isHead }: CellProps) {
  const isEmpty = content === undefined || content === null || content === false || content === "";
  const kind = isEmpty ? "none" : hasShortWords(content) ? "short" : undefined;
  const inner = <div>{isEmpty ? "–" : content}</div>;
  if (isHead)
    return (
      <th scope="row" data-title={title} class={kind}>
        {inner}
      </th>
    );
  return (
    <td data-title={title} class={kind}>
      {inner}
    </td>
  );
}
