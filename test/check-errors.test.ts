import { problemGroups } from "@nodekeeper/api/errors";
import { describe, expect, it } from "vitest";
import { errorProblemsIn, errorsPage } from "../scripts/errors-page.ts";

const text = { title: "The disk is full", cause: "Many logs.", remedy: "Remove some." };
const group = (problems: Record<string, `NK${number}`>) => ({
  title: "Disks",
  problems: Object.fromEntries(Object.entries(problems).map(([name, id]) => [name, { id, ...text }])),
});
const using = (...names: string[]) => new Map([["src/a.ts", names.map((name) => `${name}.id`).join("\n")]]);

describe("declared errors", () => {
  it("have ids of their own and are used", () => {
    expect(errorProblemsIn([group({ Full: "NK1002", Slow: "NK1001" })], using("Slow", "Full"))).toEqual([]);
  });

  it.each([
    [
      "a mentioned id that is not declared",
      group({ Full: "NK1001" }),
      using("Full", "NK1002"),
      /^src\/a\.ts: NK1002 is not/,
    ],
    ["unused", group({ Full: "NK1001", Slow: "NK1002" }), using("Full"), /^NK1002: no code uses Slow$/],
    [
      "two of one id",
      group({ Full: "NK1001", Slow: "NK1001" }),
      using("Full", "Slow"),
      /^NK1001: declared more/,
    ],
    [
      "an id instead of a name",
      group({ Full: "NK1001" }),
      using("Full", '"NK1001"'),
      /^src\/a\.ts: "NK1001" is written out/,
    ],
    ["a short id", group({ Full: "NK12" }), using("Full"), /^NK12: expected NK and four digits$/],
  ])("refused: %s", (_, declared, files, expected) => {
    expect(errorProblemsIn([declared], files)).toEqual([expect.stringMatching(expected)]);
  });

  it("are not used by a page that mentions them", () => {
    const page = new Map([["docs/a.md", "see Full, NK1001 and NK1002"]]);
    expect(errorProblemsIn([group({ Full: "NK1001" })], page)).toEqual([
      "docs/a.md: NK1002 is not declared in packages/api/src/errors",
      "NK1001: no code uses Full",
    ]);
  });

  it("make the page that operators read, by id", () => {
    expect(errorsPage("# Errors\n\n## Old\n", [group({ Full: "NK1002", Slow: "NK1001" })])).toMatch(
      /^# Errors\n\n## Disks\n\n### NK1001\n\n\*\*The disk is full\.\*\* Many logs\.\n\nRemedy: Remove some\.\n\n### NK1002\n/,
    );
  });

  it("have whole sentences", () => {
    for (const { id, title, cause, remedy } of problemGroups.flatMap(({ problems }) =>
      Object.values(problems),
    )) {
      expect(title, id).toMatch(/^[A-Z].*[^.]$/);
      for (const sentences of [cause, remedy]) expect(sentences, id).toMatch(/^[A-Z`"].*[.]$/);
    }
  });
});
