import type { ComponentChildren } from "preact";
import { Fragment } from "preact";

export interface TableRow {
  key: string | number;
  /** One for each column; the first names the row. */
  cells: readonly ComponentChildren[];
  /** "failed", "warning", or a class of the view. */
  class?: string | undefined;
  /** Shown below the row, over its whole width. */
  below?: ComponentChildren;
}

interface Props {
  /** What is in the table, for readers that do not see it; not shown. */
  label: string;
  columns: readonly string[];
  rows: readonly TableRow[];
}

/** A table; where the screen is narrow, each row is a block with its columns' titles. */
export function Table({ label, columns, rows }: Props) {
  const [first, ...rest] = columns;
  return (
    <table class="table">
      <caption class="unseen">{label}</caption>
      <thead>
        <tr>
          {columns.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells, class: kind, below }) => (
          <Fragment key={key}>
            <tr class={kind}>
              <th scope="row" data-title={first}>
                <div>{cells[0]}</div>
              </th>
              {rest.map((title, index) => (
                <td key={title} data-title={title}>
                  <div>{cells[index + 1]}</div>
                </td>
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
