import { expect, it } from "vitest";
import { Schema } from "./schema.ts";
import { tables } from "./tables.ts";

it("there are facts about each table of the schema, with which messages name what was lost", () => {
  expect(Object.keys(tables).sort()).toEqual(new Schema().tables.map(({ name }) => name));
});
