import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { within } from "../../bench/time-limit.ts";

it("a benchmark that takes too long fails, and the processes that it started are killed", async () => {
  const killedBy = Promise.withResolvers<string>();
  const run = within("slow", 0.0005, async () => {
    const child = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1e9)"], { stdio: "ignore" });
    const [, signal] = await once(child, "exit");
    killedBy.resolve(signal);
    return await new Promise<never>(() => {});
  });

  await expect(run).rejects.toThrow("The benchmark slow did not finish within 0.0005 minutes.");
  expect(await killedBy.promise).toBe("SIGKILL");
});

it("a benchmark that ends in time returns its figures", async () =>
  expect(await within("fast", 1, async () => 42)).toBe(42));
