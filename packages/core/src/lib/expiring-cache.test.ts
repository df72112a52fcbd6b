import { expect, it } from "vitest";
import { ExpiringCache } from "./expiring-cache.ts";
import { FakeClock } from "./fake-clock.ts";

function setUp(maxEntries = 10) {
  const clock = new FakeClock();
  const cache = new ExpiringCache<string>({ clock, maxEntries });
  let computed = 0;
  const compute = async () => `v${++computed}`;
  return { clock, cache, compute, get: (key: string) => cache.get(key, compute, () => 1_000) };
}

it("keeps a value for its time, and not longer", async () => {
  const { clock, get } = setUp();
  expect(await get("a")).toBe("v1");
  await clock.step(999);
  expect(await get("a")).toBe("v1");
  await clock.step(1);
  expect(await get("a")).toBe("v2");
});

it("computes once for all who ask at once", async () => {
  const { get } = setUp();
  expect(await Promise.all([get("a"), get("a"), get("b")])).toEqual(["v1", "v1", "v2"]);
});

it("does not keep a failure", async () => {
  const { cache, get } = setUp();
  await expect(
    cache.get(
      "a",
      () => Promise.reject(new Error("no")),
      () => 1_000,
    ),
  ).rejects.toThrow("no");
  expect(await get("a")).toBe("v1");
});

it("drops what was used longest ago", async () => {
  const { get } = setUp(2);
  await get("a");
  await get("b");
  await get("a");
  await get("c");
  expect(await get("a")).toBe("v1");
  expect(await get("b")).toBe("v4");
});
