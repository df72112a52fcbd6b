import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, expect, it, vi } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

let cluster: TestCluster | undefined;
let agent: RunningAgent | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await agent?.stop();
  await cluster?.stop();
});

/** As on a node on which fs.inotify.max_user_instances is reached. Returns a function that ends that. */
function exhaustInotify(): () => void {
  let isExhausted = true;
  const { watch } = fs;
  const limited = (...given: Parameters<typeof watch>) => {
    if (!isExhausted) return watch(...given);
    throw Object.assign(new Error("EMFILE: too many open files, watch"), { code: "EMFILE" });
  };
  vi.spyOn(fs, "watch").mockImplementation(limited as typeof watch);
  syncBuiltinESMExports();
  return () => {
    isExhausted = false;
  };
}

it("inotify that is exhausted is named by readiness, a metric and the log, until it is not", async () => {
  const end = exhaustInotify();
  cluster = await startCluster();
  agent = await startAgent(cluster);
  const { ready, metrics, logLines } = agent;
  await eventually(async () => {
    const { status, text } = await ready();
    expect(status).toBe(200);
    expect(text).toMatch(
      /\[\+\]DirectoryWatchesReady ok, but: \S+ is not watched \(EMFILE: too many open files/,
    );
    expect(await metrics()).toMatch(/^nodekeeper_inotify_unwatched_directories [1-9]$/m);
  });
  const warnings = logLines.filter(({ errorId }) => errorId === "NK1006");
  expect(warnings).toMatchObject([{ msg: expect.stringContaining("failed to watch directory") }]);
  end();
  await eventually(async () => {
    expect((await ready()).text).toMatch(/\[\+\]DirectoryWatchesReady ok\n/);
    expect(await metrics()).toMatch(/^nodekeeper_inotify_unwatched_directories 0$/m);
  });
});
