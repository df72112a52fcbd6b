import { systemClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import type { Driver } from "./driver.ts";
import type { Session } from "./session.ts";
import { TakenNames } from "./taken-names.ts";

it("a delay before the next look is long enough that time passes", async () => {
  const lookedAt = 257_759.101_500_915_97;
  let [now, looks] = [lookedAt, 0];
  const client = { visit: () => Promise.resolve(void looks++) };
  const names = new TakenNames({
    client: client as never,
    clock: { ...systemClock, monotonic: () => now },
    nodeName: "worker-1",
  });
  const session = { api: {}, cache: { of: () => [] } } as unknown as Session;
  const look = (name: string) => {
    const driver = { name: "fabric.example.com", reportedPart: () => ({ pools: [{ name }] }) };
    return names.look(session, driver as unknown as Driver, AbortSignal.abort());
  };
  expect(await look("one")).toBe(0);
  now = 267_759.101_500_915_95;
  const delayMs = await look("two");
  expect(delayMs === 0 || now + delayMs > now).toBe(true);
  now += delayMs;
  expect(await look("two")).toBe(0);
  expect(looks).toBe(2);
});
