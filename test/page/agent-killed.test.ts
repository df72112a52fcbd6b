import { mkdirSync } from "node:fs";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterEach, beforeEach, expect, inject, it } from "vitest";
import { freePort } from "../e2e/support/free-port.ts";
import { agentFlags, type StatusReader, statusReader } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { hardPressure, startEvictionPlugin, type TestEvictionPlugin } from "../support/eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems } from "./support/in-page.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
let cluster: TestCluster;
let plugin: TestEvictionPlugin;
let agent: ScriptProcess | undefined;
let address: string;
let status: StatusReader;

beforeEach(async () => {
  browser = await connectTo(inject("browser"));
  cluster = await startCluster();
  const { pluginDirectories } = agentFlags(cluster);
  mkdirSync(pluginDirectories!, { recursive: true });
  plugin = await startEvictionPlugin(pluginDirectories!, "pressure");
  plugin.threshold = { ...hardPressure, metType: 0, observedValue: 0.4 };
  address = `127.0.0.1:${await freePort()}`;
  status = statusReader(address);
});
afterEach(async () => {
  await browser.close();
  await killAgent();
  await plugin.stop();
  await cluster.stop();
});

/** Resolves when a round has run. */
async function startAgent(): Promise<void> {
  const flags = { ...agentFlags(cluster), serverAddress: address };
  agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(flags)]);
  await until("a round", async () => (await lastRound()) !== undefined, { explain: agent.output });
}

async function killAgent(): Promise<void> {
  agent?.kill("SIGKILL");
  await agent?.ended;
}

async function lastRound(): Promise<number | undefined> {
  const { rounds } = await status.api("eviction/readings").catch(() => ({ rounds: [] }));
  return rounds.at(-1)?.at;
}

it("shows that the node was not observed while the agent was down, on the axis and in words", async () => {
  await startAgent();
  await using open = await OpenPage.open(browser, address, { expected: /net::ERR_/ });
  await open.goTo("#/timeline");
  await open.see("worker-1", /pressure/);
  const bands = open.page.getByRole("list", { name: "Times in which the node was not observed" });
  expect(await bands.count()).toBe(0);

  await killAgent();
  await open.see(/Reconnecting\./);
  const killedAt = Date.now();
  await startAgent();

  const { items } = await status.api("marks");
  const startOf = (wanted: string) => items.find(({ kind }: { kind: string }) => kind === wanted);
  const start = startOf("agentStartedAfterKill");
  expect(start.unobservedSince).toBeGreaterThanOrEqual(startOf("agentStarted").at);
  expect(start.unobservedSince).toBeLessThanOrEqual(killedAt);

  // The page that was open, and one that is opened in the middle of it.
  await bands.getByText(/Agent down for \d+ s, last sign of life .*: nothing was observed/).waitFor();
  const middle = Math.round((start.unobservedSince + start.at) / 2);
  await using other = await OpenPage.open(browser, address);
  await other.goTo(`#/timeline?from=${middle - 1_000}&to=${middle + 1_000}`);
  await other.see("Agent down");
  await eventually(async () => expect(await accessibilityProblems(other.page)).toEqual([]));
  await other.page.getByText("As a list").click();
  await other.see("Not observed, newest first", /Agent down for \d+ s, last sign of life/);
  other.expectNoProblems();
  open.expectNoProblems();
});
