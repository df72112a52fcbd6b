import { describe, expect, it } from "vitest";
import { selectedText } from "./selected-text.ts";
import { barsOfAll, eventAt } from "./testing.ts";

const container = { id: "c1", name: "main", kind: "container" } as const;
const pods = barsOfAll([
  eventAt(1, { container }),
  eventAt(2, { type: "ContainerDied", container, exitCode: 137, reason: "OOMKilled" }),
]);
const mark = { id: 7, at: 0, kind: "evictionSelected" as const, title: "default/web\u202e selected" };
const data = { pods, marks: [mark] };

describe("what is selected, in words", () => {
  it("names it and how it ended", () => {
    expect(selectedText({ kind: "pod", uid: "uid-web" }, data)).toBe("Selected: pod default/web");
    expect(selectedText({ kind: "container", uid: "uid-web", id: "c1" }, data)).toBe(
      "Selected: main of default/web, OOMKilled",
    );
    expect(selectedText({ kind: "mark", id: 7 }, data)).toMatch(
      /^Selected: Eviction at .*: default\/web\\u202e selected$/,
    );
  });

  it("is empty where that is not known", () => {
    expect(selectedText(undefined, data)).toBe("");
    expect(selectedText({ kind: "mark", id: 8 }, data)).toBe("");
    expect(selectedText({ kind: "container", uid: "uid-web", id: "c2" }, data)).toBe("");
  });
});
