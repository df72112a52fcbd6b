import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";

/** A value of an exported row. A list is one in JSON, and joined in CSV. */
export type Value = string | number | boolean | null | readonly string[];
/** A row by its columns. Rows of one table may lack columns of others. */
export type Row = Readonly<Record<string, Value>>;

/** A table of what the view shows. It is only read when it is exported. */
export interface ExportedTable {
  readonly name: string;
  read(): readonly Row[];
}

/** The tables of the current view, in their order. */
export type Exports = Set<ExportedTable>;
export const ExportsContext = createContext<Exports>(new Set());

/** Offers rows for export as long as the component is shown. Without a name, nothing is. */
export function useExport(name: string | undefined, read: () => readonly Row[]): void {
  const exports = useContext(ExportsContext);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    if (name === undefined) return undefined;
    const table = { name, read: () => latest.current() };
    exports.add(table);
    return () => void exports.delete(table);
  }, [name]);
}

/** Formats a time for an export: UTC, ISO 8601. Null if it is unknown. */
export function exportedTime(ms: number | null | undefined): string | null {
  return ms == null || Number.isNaN(new Date(ms).getTime()) ? null : new Date(ms).toISOString();
}
