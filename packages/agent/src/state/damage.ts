import type { DatabaseSync } from "node:sqlite";
import { counted } from "@nodekeeper/api/wording";
import type { Schema, Table } from "./schema.ts";
import { tables } from "./tables.ts";

/** Data of a table that could not be read and is no longer in the database. */
export interface Damage {
  table: string;
  /** What the table contains. */
  holds: string;
  /** "3 rows", "the table", "rows on damaged pages". */
  lost: string;
}

export function damageOf(table: string, lost: number | "the table" | "rows on damaged pages"): Damage {
  const text = typeof lost === "string" ? lost : counted(lost, "row");
  return { table, holds: tables[table]?.holds ?? "unknown", lost: text };
}

// Just below the range of Date, and a safe integer.
const LARGEST = 8e15;

/** Deletes rows that their readers cannot decode: integers out of range, invalid texts. */
export function deleteDamagedRows(connection: DatabaseSync, schema: Schema): Damage[] {
  const damage: Damage[] = [];
  for (const table of schema.tables) {
    const { changes } = connection.prepare(`DELETE FROM ${table.name} WHERE NOT (${readable(table)})`).run();
    if (changes > 0) damage.push(damageOf(table.name, Number(changes)));
  }
  repairSequences(connection, schema);
  return damage;
}

function readable({ name, integers }: Table): string {
  const inRange = integers.map((column) => `coalesce(${column}, 0) BETWEEN ${-LARGEST} AND ${LARGEST}`);
  return [...inRange, tables[name]?.readable ?? "1"].map((condition) => `(${condition})`).join(" AND ");
}

// Restores the largest IDs that were assigned if their own rows are damaged.
function repairSequences(connection: DatabaseSync, schema: Schema): void {
  for (const { name } of schema.tables.filter(({ hasRowId }) => hasRowId))
    connection.exec(
      `UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(rowid), 0) FROM ${name})
       WHERE name = '${name}' AND (typeof(seq) <> 'integer' OR seq NOT BETWEEN 0 AND ${LARGEST})`,
    );
}
