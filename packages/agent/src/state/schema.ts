import { DatabaseSync } from "node:sqlite";
import { StateDamaged } from "@nodekeeper/api/errors";
import { addColumns, createSchema } from "./definitions.ts";

/** A table of the schema. */
export interface Table {
  name: string;
  /** In order. */
  columns: readonly string[];
  /** Columns of type INTEGER. */
  integers: readonly string[];
  hasRowId: boolean;
}

interface SchemaItem {
  type: string;
  name: string;
  table: string;
  sql: string;
}

/** The tables and indexes of the database. */
export class Schema {
  readonly tables: readonly Table[];
  readonly #items: readonly SchemaItem[];

  constructor() {
    using empty = new DatabaseSync(":memory:");
    createSchema(empty);
    this.#items = itemsOf(empty);
    this.tables = this.#items
      .filter(({ type }) => type === "table")
      .map(({ name }) => tableOf(empty, name))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Creates missing tables and indexes, and columns that older agents did not have. Returns the names of the created
   * tables. Throws `corrupt` if a table lacks columns.
   */
  complete(connection: DatabaseSync): string[] {
    const found = new Set(itemsOf(connection).map(({ type, name }) => `${type} ${name}`));
    const created: string[] = [];
    // Creates tables before their indexes.
    for (const { type, name, sql } of this.#items.toSorted((a, b) => (a.type < b.type ? 1 : -1))) {
      if (found.has(`${type} ${name}`)) continue;
      connection.exec(sql);
      if (type === "table") created.push(name);
    }
    addColumns(connection);
    for (const { name, columns } of this.tables) {
      const own = tableOf(connection, name).columns;
      if (columns.some((column) => !own.includes(column)))
        throw new StateDamaged({ place: `table ${name}`, problem: `has the columns ${own.join(", ")}` });
    }
    return created.sort();
  }
}

function itemsOf(connection: DatabaseSync): SchemaItem[] {
  return connection
    .prepare(
      "SELECT type, name, tbl_name AS \"table\", sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'",
    )
    .all() as unknown as SchemaItem[];
}

function tableOf(connection: DatabaseSync, name: string): Table {
  const columns = connection.prepare("SELECT name, type FROM pragma_table_info(?)").all(name);
  const list = connection.prepare("SELECT wr FROM pragma_table_list(?) WHERE schema = 'main'").get(name);
  return {
    name,
    columns: columns.map((column) => column.name as string),
    integers: columns.filter(({ type }) => type === "INTEGER").map((column) => column.name as string),
    hasRowId: list?.wr === 0,
  };
}
