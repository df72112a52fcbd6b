import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { claimOf } from "./claims.ts";
import { PreparationCalls } from "./preparation-calls.ts";
import { serveTestDriver } from "./testing/test-driver.ts";

it.each([
  [true, ["prepare", "restore 1", "prepare", "prepare"]],
  [false, ["prepare", "prepare", "prepare"]],
])(
  "with restoresFirst %s, a new connection begins as the agent's: with the claims that are prepared",
  async (restoresFirst, wanted) => {
    const directory = mkdtempSync(join(tmpdir(), "nkc-"));
    const endpoint = join(directory, "driver.sock");
    const calls: string[] = [];
    const server = await serveTestDriver(endpoint, {
      async prepare() {
        calls.push("prepare");
        return {};
      },
      async restore({ claims }) {
        calls.push(`restore ${claims.length}`);
        return {};
      },
    });
    const preparation = new PreparationCalls({
      endpoint,
      service: "nodekeeper.devices.v1alpha2.DevicePreparation",
      clock: systemClock,
      signal: new AbortController().signal,
      restoresFirst,
      onLeftPrepared: () => {},
    });
    try {
      await preparation.prepare(claimOf([]));
      preparation.reconnect(endpoint);
      await Promise.all([preparation.prepare(claimOf([])), preparation.prepare(claimOf([]))]);
      expect(calls).toEqual(wanted);
    } finally {
      await preparation[Symbol.asyncDispose]();
      server.forceShutdown();
      rmSync(directory, { recursive: true });
    }
  },
);
