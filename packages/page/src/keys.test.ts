import { afterEach, describe, expect, it, vi } from "vitest";
import { overlayOf } from "./keys.ts";

const press = (key: string, more: Partial<KeyboardEvent> = {}) =>
  overlayOf({
    ...{ key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, target: null },
    preventDefault: () => {},
    ...more,
  });

// A target that is, or is within, an element that a selector matches.
class FakeElement {
  readonly #names: readonly string[];
  constructor(...names: string[]) {
    this.#names = names;
  }
  closest(selector: string): FakeElement | null {
    return selector.split(", ").some((one) => this.#names.includes(one)) ? this : null;
  }
}

describe("keys of every view", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("open the search and the list of keys, also where they need Shift", () => {
    expect(press("/")).toBe("search");
    expect(press("/", { shiftKey: true })).toBe("search");
    expect(press("?", { shiftKey: true })).toBe("keys");
    expect(press("a")).toBeUndefined();
  });

  it.each(["ctrlKey", "metaKey", "altKey"])("are the browser's with %s", (modifier) => {
    expect(press("/", { [modifier]: true })).toBeUndefined();
    expect(press("?", { [modifier]: true })).toBeUndefined();
  });

  it.each(["input", "textarea", "select", "[contenteditable]"])("are typed in %s", (field) => {
    vi.stubGlobal("Element", FakeElement);
    const within = (...names: string[]) => ({ target: new FakeElement(...names) as unknown as EventTarget });
    expect(press("/", within(field))).toBeUndefined();
    expect(press("/", within("button"))).toBe("search");
  });
});
