import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { createSchema } from "./definitions.ts";
import { salvage } from "./salvage.ts";
import { Schema } from "./schema.ts";

it("preserves the IDs that were assigned, also in a table of which no row is left", () => {
  using from = new DatabaseSync(":memory:");
  using to = new DatabaseSync(":memory:");
  for (const connection of [from, to]) createSchema(connection);
  from.exec(`
    INSERT INTO mark (id, at, kind, title) VALUES (7, 1, 'agentStarted', 'x'), (9, 1, 'agentStarted', 'x');
    INSERT INTO signal (id, plugin, scope, operator) VALUES (5, 'a', 'memory', 'greaterThan');
    DELETE FROM mark WHERE id = 9;
    DELETE FROM signal`);
  expect(salvage(from, to, new Schema())).toEqual([]);
  const sequences = to.prepare("SELECT name, seq FROM sqlite_sequence ORDER BY name").all();
  expect(sequences).toEqual([
    { name: "mark", seq: 9 },
    { name: "signal", seq: 5 },
  ]);
});
