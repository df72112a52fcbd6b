import { csvOf } from "./csv.ts";
import { type ExportedTable, exportedTime } from "./exports.ts";

/** What an export is about. */
export interface About {
  node: string;
  /** The view's title. */
  view: string;
  /** The view's address, which has its filters. */
  address: string;
  /** Of when the data is, milliseconds since the epoch. */
  at: number;
}

/** A file for the browser to save. */
export interface ExportedFile {
  name: string;
  type: string;
  content: string;
}

/** Returns all tables of a view as a JSON document. */
export function jsonFile(about: About, tables: readonly ExportedTable[]): ExportedFile {
  const content = {
    ...about,
    at: exportedTime(about.at),
    tables: tables.map((table) => ({ name: table.name, rows: table.read() })),
  };
  return {
    name: fileName(about, "", "json"),
    type: "application/json",
    content: `${JSON.stringify(content, undefined, 2)}\n`,
  };
}

/** Returns one table of a view as CSV. */
export function csvFile(about: About, table: ExportedTable): ExportedFile {
  return {
    name: fileName(about, table.name, "csv"),
    type: "text/csv;charset=utf-8",
    content: csvOf(table.read()),
  };
}

// "worker-1-now-last-evictions-20261128T030405Z.csv"
function fileName({ node, view, at }: About, table: string, extension: string): string {
  const time = (exportedTime(at) ?? "").replaceAll(/[-:]|\.\d+/g, "");
  const words = [node, view, table].map((text) => text.toLowerCase().replaceAll(/[^a-z\d.]+/g, "-"));
  const name = [...words.map((text) => text.slice(0, 60).replaceAll(/^[-.]+|[-.]+$/g, "")), time];
  return `${name.filter(Boolean).join("-")}.${extension}`;
}
