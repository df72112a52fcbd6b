import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { FakeClock, silentLogger, systemClock, untilAborted } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadConfiguration } from "../config/index.ts";
import { askForHandover, DirectoryLock, offerHandover } from "../state/index.ts";
import { Handover, type RunningAgent } from "./handover.ts";

let stateDir: string;
let configuration: AgentConfiguration;
const never = new AbortController().signal;

beforeEach(async () => {
  stateDir = mkdtempSync(join(tmpdir(), "nkh-"));
  const flags = { stateDir, rollingUpdate: "true" };
  ({ configuration } = await loadConfiguration({ flags, env: {}, hostname: "worker-1" }));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

it("asks again if the other agent does not listen yet", async () => {
  using lock = DirectoryLock.take(stateDir, 0);
  const clock = new FakeClock();
  const started = new Handover({ clock, log: silentLogger }).begin(configuration, never);
  await clock.step(500);
  const offer = await offerHandover(stateDir);
  await until("the offer is accepted", () => offer.asked.aborted, { clock, stepMs: 10 });
  lock[Symbol.dispose]();
  let isOver = false;
  void started.then(() => (isOver = true));
  await until("the directory is taken over", () => isOver, { clock });
  expect(await started).toBeUndefined();
});

it.each<[string, string[], boolean]>([
  ["waits for its turn again", [], true],
  ["ends if parts of it did not stop", ["claims"], false],
])("an agent that has handed over %s", async (_, abandoned, isWaiting) => {
  const agent: RunningAgent = { name: "agent", run: untilAborted, abandoned: () => abandoned };
  const ran = new Handover({ clock: systemClock, log: silentLogger }).run(agent, configuration, never);
  await until("it is asked", () => askForHandover(stateDir));
  expect(await ran).toBe(isWaiting);
});
