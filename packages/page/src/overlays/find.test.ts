import { describe, expect, it } from "vitest";
import { findItems, type Item } from "./find.ts";

const item = (kind: string, name: string, note?: string): Item => ({
  kind,
  name,
  note,
  address: `#/${name}`,
});
const all = [
  item("view", "Timeline"),
  item("pod", "default/web-0", "deleted"),
  item("pod", "web/api-0"),
  item("pod", "shop/myweb"),
  item("plugin", "web"),
  item("round", "Round 7", "evicts default/web-0"),
];
const found = (text: string) => findItems(all, text).items.map(({ kind, name }) => `${kind} ${name}`);

describe("the search", () => {
  it("ranks a name that is the text before those that begin with it, have a part of it, or only mention it", () => {
    expect(found("Web")).toEqual([
      "plugin web",
      "pod web/api-0",
      "pod default/web-0",
      "pod shop/myweb",
      "round Round 7",
    ]);
  });

  it("needs every word, in the name, the kind or the note", () => {
    expect(found("pod web")).toEqual(["pod default/web-0", "pod web/api-0", "pod shop/myweb"]);
    expect(found("web deleted")).toEqual(["pod default/web-0"]);
    expect(found("  round 7 ")).toEqual(["round Round 7"]);
    expect(found("no-such-thing")).toEqual([]);
  });

  it("has everything, in order, before a text is written", () => {
    expect(found("")).toHaveLength(all.length);
    expect(found("")[0]).toBe("view Timeline");
  });

  it("counts those that are not listed", () => {
    const many = Array.from({ length: 10_000 }, (_, at) => item("device", `pool/device-${at}`));
    const { items, total } = findItems(many, "device-99");
    expect(total).toBe(111);
    expect(items).toHaveLength(50);
    expect(items[0]!.name).toBe("pool/device-99");
  });
});
