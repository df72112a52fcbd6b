import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { hardPressure, pick } from "../support/eviction-plugin.ts";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems } from "./support/in-page.ts";
import { startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

it("has the thresholds that are met, the evictions with their outcome, and the limits that hold further ones up", async () => {
  await using node = await startNode({
    flags: { evictionLimitsPerNode: "1", evictionLimitsWindow: "1h", evictionCooldown: "0s" },
  });
  for (const name of ["first", "second"]) node.addPod(name);
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/now");
  await open.see("Live: pods are evicted", "None in the last hour.");
  await node.evict("first");
  node.pressure.top = pick(["second"]);
  node.pressure.threshold = hardPressure;
  await open.see("memory 0.93 > threshold 0.8", "default/first", /^evicted: /, "1 of 1");
  await open.see(/on hold: limit of evictions on this node reached/, /1 \(node limit\)/);
  expect(await accessibilityProblems(open.page)).toEqual([]);
  open.expectNoProblems();
});

it("counts down by itself, without a message of the agent", async () => {
  await using node = await startNode({ flags: { evictionLimitsPerNode: "1", evictionLimitsWindow: "1m" } });
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/now");
  await node.evict("web");
  const free = open.page.locator("tr", { hasText: "this node" }).locator("time");
  await free.waitFor();
  const seconds = async () => Number(/in (\d+) s/.exec((await free.textContent()) ?? "")?.[1]);
  const before = await seconds();
  await node.agent.stop();
  await expect.poll(seconds, { timeout: 120_000 }).toBeLessThan(before - 1);
});

it("dry run can't be missed: nothing is evicted, and what would have been is there once with its number", async () => {
  await using node = await startNode({ flags: { evictionDryRunPlugins: "*" } });
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/now");
  node.pressure.top = pick(["web"]);
  node.pressure.threshold = hardPressure;
  await open.see("dry run: only recorded", "dry run: not evicted", /not evicted \d+ times$/);
  expect(await open.page.getByText("Dry run: no pod is evicted").count()).toBe(2);
  expect(await open.page.getByRole("link", { name: "default/web" }).count()).toBe(1);
  expect(node.cluster.evictions()).toEqual([]);
  open.expectNoProblems();
});
