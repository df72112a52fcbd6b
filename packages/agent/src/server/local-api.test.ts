import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { expect, it, vi } from "vitest";
import { LocalApi } from "./local-api.ts";

it("reports why it can't be served, from the first try on, and once", async () => {
  const directory = mkdtempSync(join(tmpdir(), "nk-api-"));
  writeFileSync(join(directory, "file"), "");
  const lines: Record<string, unknown>[] = [];
  const log = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const tries = vi.fn();
  // No wait between tries is worth a test's time.
  const clock = { ...systemClock, sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(10, signal) };
  const api = new LocalApi({ path: join(directory, "file", "agent.sock"), addServices: tries, clock, log });
  const controller = new AbortController();
  const running = api.run(controller.signal);
  await eventually(() => expect(tries.mock.calls.length).toBeGreaterThan(2));
  controller.abort(stopped("test is over"));
  await running;
  rmSync(directory, { recursive: true });
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    "warn: failed to serve the local API, retrying",
  ]);
  expect(api.healthCheck().check()).toMatchObject({
    ok: false,
    message: expect.stringContaining("local API"),
    errorId: "NK1711",
  });
});
