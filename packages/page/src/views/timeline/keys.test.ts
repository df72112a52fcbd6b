import { describe, expect, it } from "vitest";
import { takeKey } from "./keys.ts";

const press = (key: string, more: Partial<KeyboardEvent> = {}) => {
  const done: string[] = [];
  const act =
    (name: string) =>
    (...given: unknown[]) =>
      void done.push([name, ...given].join(" "));
  const event = {
    ...{ key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, target: null },
    preventDefault: act("taken"),
    ...more,
  };
  takeKey(event, {
    pan: act("pan"),
    zoom: act("zoom"),
    mark: act("mark"),
    toggleLive: act("live"),
    close: act("close"),
  });
  return done;
};

describe("keys", () => {
  it("move along the axis, and further with Shift", () => {
    expect(press("ArrowLeft")).toEqual(["taken", "pan -0.1"]);
    expect(press("ArrowRight", { shiftKey: true })).toEqual(["taken", "pan 0.5"]);
    expect(press("+")).toEqual(["taken", "zoom 0.5"]);
    expect(press("[")).toEqual(["taken", "mark -1"]);
    expect(press("p")).toEqual(["taken", "live"]);
    expect(press("Escape")).toEqual(["taken", "close"]);
  });

  it("that are the browser's, or others, are left alone", () => {
    expect(press("+", { ctrlKey: true })).toEqual([]);
    expect(press("ArrowLeft", { altKey: true })).toEqual([]);
    expect(press("a")).toEqual([]);
  });
});
