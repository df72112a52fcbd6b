import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { StatusPace } from "./status-pace.ts";

const DRIVER = "gpu.example.com";

it("a refused claim does not end the hold of all writes of its driver, which another write began meanwhile", () => {
  const clock = new FakeClock();
  const pace = new StatusPace({ clock, log: silentLogger });
  expect(pace.take(DRIVER)).toBe(0);
  const holdMs = pace.hold(DRIVER, "may not patch");
  pace.holdClaim(DRIVER, "uid", "a field is forbidden");
  expect(pace.take(DRIVER)).toBe(holdMs);
  pace.release(DRIVER);
  pace.holdClaim(DRIVER, "uid", "a field is forbidden");
  expect(pace.take(DRIVER)).toBe(0);
});
