import { describe, expect, it } from "vitest";
import { durationText, failureText, latencyText, rateText } from "./calls.ts";

const calls = (changed: object) => ({ calls: { count: 400, failures: 0, perMinute: 12.04, ...changed } });

describe("texts about calls", () => {
  it("a rate is per minute, a count where there is less than one", () => {
    expect(rateText(calls({}))).toBe("12 a minute");
    expect(rateText(calls({ count: 3, perMinute: 0.2 }))).toBe("3 since it registered");
    expect(rateText(calls({ count: 0, perMinute: 0 }))).toBe("none yet");
    expect(rateText({})).toBeUndefined();
  });

  it("failures are named where there are some", () => {
    expect(failureText(calls({}))).toBeUndefined();
    expect(failureText(calls({ failures: 3 }))).toBe("3 of 400 failed");
  });

  it("durations have the unit that is read best", () => {
    expect([0.42, 12.3, 999, 1_234].map(durationText)).toEqual(["0.42 ms", "12 ms", "1000 ms", "1.2 s"]);
  });

  it("has in words what the plot shows", () => {
    const durations = [5, 1, 3, 12, 2].map((ms) => ({ ms, ok: ms !== 12 }));
    expect(latencyText(durations)).toBe("5 calls: last 2 ms, median 3 ms, longest 12 ms, 1 failed.");
    expect(latencyText([])).toBe("No calls yet.");
  });
});
