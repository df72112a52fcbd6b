import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Ticker } from "./ticker.ts";

beforeEach(() => void vi.useFakeTimers({ now: 5_000 }));
afterEach(() => void vi.useRealTimers());

it("calls all listeners at the same moment, and runs only while there are some", () => {
  const ticker = new Ticker();
  const heard: string[] = [];
  const stopA = ticker.listen((now) => heard.push(`a ${now}`));
  vi.advanceTimersByTime(500);
  const stopB = ticker.listen((now) => heard.push(`b ${now}`));
  vi.advanceTimersByTime(500);
  expect(heard).toEqual(["a 6000", "b 6000"]);
  stopA();
  vi.advanceTimersByTime(1_000);
  expect(heard.at(-1)).toBe("b 7000");
  stopB();
  expect(vi.getTimerCount()).toBe(0);
});

it("continues when a listener stops itself", () => {
  const ticker = new Ticker();
  const heard: string[] = [];
  const stop = ticker.listen(() => {
    heard.push("once");
    stop();
  });
  const stopOther = ticker.listen(() => heard.push("other"));
  vi.advanceTimersByTime(2_000);
  expect(heard).toEqual(["once", "other", "other"]);
  stopOther();
});
