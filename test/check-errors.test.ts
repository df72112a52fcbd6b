import { describe, expect, it } from "vitest";
import { errorGroups } from "../packages/agent/src/cli/error-catalogue/index.ts";
import { errorProblemsIn, errorsPage } from "../scripts/errors-page.ts";

const text = { title: "The disk is full", cause: "Many logs.", remedy: "Remove some." };
const group = (...ids: `NK${number}`[]) => ({
  title: "Disks",
  entries: Object.fromEntries(ids.map((id) => [id, text])),
});
const used = (...ids: string[]) => new Map([["src/a.ts", ids.map((id) => `{ id: "${id}" }`).join("\n")]]);

describe("catalogue of errors", () => {
  it("is in order when each id is in it once, sorted, and attached to something", () => {
    expect(
      errorProblemsIn([group("NK1001", "NK1002"), group("NK1101")], used("NK1101", "NK1002", "NK1001")),
    ).toEqual([]);
  });

  it.each([
    [
      "an id that is attached and not in it",
      [group("NK1001")],
      used("NK1001", "NK1002"),
      /^src\/a\.ts: NK1002 is not/,
    ],
    [
      "an id that no code attaches",
      [group("NK1001", "NK1002")],
      used("NK1001"),
      /^NK1002: no code attaches it$/,
    ],
    ["an id twice", [group("NK1001"), group("NK1001")], used("NK1001"), /^NK1001: .*sorted/],
    [
      "ids that are not sorted",
      [group("NK1101"), group("NK1001")],
      used("NK1001", "NK1101"),
      /^NK1001: .*sorted/,
    ],
    ["a short id", [group("NK12")], used("NK12"), /^NK12: expected NK and four digits$/],
  ])("refused: %s", (_, groups, files, expected) => {
    expect(errorProblemsIn(groups, files)).toEqual([expect.stringMatching(expected)]);
  });

  it("takes a page that mentions an id for no use of it", () => {
    const page = new Map([["docs/a.md", 'see "NK1001" and NK1002']]);
    expect(errorProblemsIn([group("NK1001")], page)).toEqual([
      "docs/a.md: NK1002 is not in the catalogue of errors",
      "NK1001: no code attaches it",
    ]);
  });

  it("is the page that operators read", () => {
    expect(errorsPage([group("NK1001")])).toMatch(
      /\n## Disks\n\n### NK1001\n\n\*\*The disk is full\.\*\* Many logs\.\n\nRemedy: Remove some\.\n$/,
    );
  });

  it("has whole sentences", () => {
    for (const [id, { title, cause, remedy }] of errorGroups.flatMap(({ entries }) =>
      Object.entries(entries),
    )) {
      expect(title, id).toMatch(/^[A-Z].*[^.]$/);
      for (const sentences of [cause, remedy]) expect(sentences, id).toMatch(/^[A-Z`"].*[.]$/);
    }
  });
});
