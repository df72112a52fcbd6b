import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { imagePath } from "./image-path.ts";

const { signal } = new AbortController();

it("is the configured path, whatever the runtime would report", async () => {
  expect(await imagePath("/images", () => Promise.reject(new Error("asked")), new FakeClock())(signal)).toBe(
    "/images",
  );
  await expect(imagePath("", undefined, new FakeClock())(signal)).rejects.toThrow("no container runtime");
});

it("asks the runtime until it has answered once, and not each round while it is unavailable", async () => {
  const clock = new FakeClock();
  let asked = 0;
  let isDown = true;
  const path = imagePath(
    "",
    async () => {
      asked++;
      if (isDown) throw new Error("away");
      return "/var/lib/containerd";
    },
    clock,
  );
  for (let round = 0; round < 3; round++) await expect(path(signal)).rejects.toThrow("away");
  expect(asked).toBe(1);
  isDown = false;
  await clock.step(30_000);
  expect(await path(signal)).toBe("/var/lib/containerd");
  expect(await path(signal)).toBe("/var/lib/containerd");
  expect(asked).toBe(2);
});
