import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { DriverReturn } from "./driver-return.ts";

it("a call waits 20 s at most for the claims of its driver to be reconciled", async () => {
  const clock = new FakeClock();
  const connection = { reconciled: Promise.withResolvers<void>() };
  const driverReturn = new DriverReturn({
    drivers: { get: () => ({ connection }) },
    settings: () => ({}),
    clock,
    log: silentLogger,
  } as never);
  const claim = { namespace: "default", name: "a", uid: "uid-of-a" };
  const call = { signal: new AbortController().signal, waitUntil: clock.monotonic() + 40_000 };
  const calls: number[] = [];
  const done = driverReturn.run("gpu.example.com", claim, async () => calls.push(clock.monotonic()), call);
  const startedAt = clock.monotonic();
  await clock.step(19_999);
  expect(calls).toEqual([]);
  await clock.step(1);
  await done;
  expect(calls).toEqual([startedAt + 20_000]);
});
