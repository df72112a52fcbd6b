import { NodekeeperError } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type FleetNodeState, TestFleet } from "./support/fleet.ts";
import { accessibilityProblems, keyboardProblems, overflow } from "./support/in-page.ts";
import { startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

/** Opens the printed link, as a user does, and waits for the list. */
async function openFleet(fleet: TestFleet, width = 1_280): Promise<OpenPage> {
  const { host, hash } = new URL(await fleet.address());
  const open = await OpenPage.open(browser, host, { width });
  await open.goTo(hash);
  await open.page.getByRole("table", { name: "Nodes" }).waitFor();
  return open;
}

const rowOf = (page: Page, node: string) =>
  page.getByRole("table", { name: "Nodes" }).locator("tbody tr:not(.below)", { hasText: node });
const namesIn = async (page: Page) =>
  (await page.getByRole("table", { name: "Nodes" }).locator("tbody th").allTextContents()).map((text) =>
    text.trim(),
  );

const troubled: Record<string, FleetNodeState> = {
  "worker-1": {},
  "worker-2": { mode: "live", evicted: 3, conditions: ["MemoryPressure"], version: "0.2.0" },
  "worker-3": { failing: { "disk-io": "ThresholdMet timed out after 3 s" } },
  "worker-4": { problem: "can't query the agent on node worker-4: pod agent-4 is CrashLoopBackOff" },
  "worker-5": { hasAgent: false },
  "worker-6": { condition: "NotReady" },
};

describe("the list of nodes", () => {
  it("has the state of each node, and why there is none", async () => {
    await using fleet = new TestFleet(troubled);
    await using open = await openFleet(fleet);
    const { page } = open;
    await rowOf(page, "worker-1").filter({ hasText: "ready" }).filter({ hasText: "dry run" }).waitFor();
    await rowOf(page, "worker-2").filter({ hasText: "MemoryPressure" }).filter({ hasText: "live" }).waitFor();
    await rowOf(page, "worker-3").filter({ hasText: "1 failing" }).waitFor();
    await rowOf(page, "worker-4").filter({ hasText: "no answer" }).waitFor();
    await rowOf(page, "worker-5").filter({ hasText: "no agent" }).waitFor();
    await rowOf(page, "worker-6").filter({ hasText: "node not ready" }).waitFor();
    await open.see(
      "failing: disk-io: ThresholdMet timed out after 3 s",
      /pod agent-4 is CrashLoopBackOff/,
      "3 evictions in the last hour",
      "versions 0.1.0 on 3, 0.2.0 on 1",
    );
    open.expectNoProblems();
  });

  it("changes while it is open", async () => {
    await using fleet = new TestFleet({ "worker-1": {} });
    await using open = await openFleet(fleet);
    await rowOf(open.page, "worker-1").filter({ hasText: "dry run" }).waitFor();
    fleet.nodes.set("worker-1", { mode: "live", evicted: 1, conditions: ["MemoryPressure"] });
    await rowOf(open.page, "worker-1")
      .filter({ hasText: "live" })
      .filter({ hasText: "1 condition" })
      .waitFor();
    fleet.nodes.set("worker-1", { problem: "the agent on node worker-1 does not respond" });
    await rowOf(open.page, "worker-1").filter({ hasText: "no answer" }).waitFor();
    // What it answered last is shown still, with its age.
    await rowOf(open.page, "worker-1")
      .filter({ hasText: "live" })
      .filter({ hasText: /\d+ s ago/ })
      .waitFor();
    open.expectNoProblems();
  });

  it("is filtered and sorted, which its address has", async () => {
    await using fleet = new TestFleet(troubled);
    await using open = await openFleet(fleet);
    const { page } = open;
    await rowOf(page, "worker-2").filter({ hasText: "live" }).waitFor();
    await page.getByRole("button", { name: "Under pressure" }).click();
    await open.see("1 of 6 nodes");
    expect(await namesIn(page)).toEqual(["worker-2"]);
    await page.getByRole("button", { name: "All nodes" }).click();
    await page.getByRole("button", { name: "Evicted in 1 h" }).click();
    await page.getByRole("button", { name: "Evicted in 1 h" }).click();
    expect((await namesIn(page))[0]).toBe("worker-2");
    expect(new URL(page.url()).hash).toBe("#/nodes?sort=-evicted");
    await page.getByRole("searchbox").fill("crashloop");
    await open.see("1 of 6 nodes");
    expect(await namesIn(page)).toEqual(["worker-4"]);
    open.expectNoProblems();
  });

  it("can be used with 1,000 nodes: what is on the screen is asked for, and typing is not slow", async () => {
    const nodes = Array.from(
      { length: 1_000 },
      (_, at) => [`node-${String(at).padStart(4, "0")}`, {}] as const,
    );
    await using fleet = new TestFleet(Object.fromEntries(nodes));
    await using open = await openFleet(fleet);
    const { page } = open;
    await open.see("Page 1 of 20");
    await page.getByRole("searchbox").fill("node-09");
    await open.see("100 of 1000 nodes");
    await page.getByRole("button", { name: "Next 50" }).click();
    await open.see("Page 2 of 2");
    expect((await namesIn(page))[0]).toBe("node-0950");
    // They are read before the rest of the cluster: fleet-reader.test.ts.
    await page.waitForRequest((request) => request.url().includes("node-0999"));
    await until("those on the screen are read", () => (fleet.reads.get("node-0999") ?? 0) > 0);
    const slowest = await page.evaluate(async () => {
      const input = document.querySelector<HTMLInputElement>("input[type=search]")!;
      let longest = 0;
      for (const text of ["n", "no", "node", "node-0", "node-05", ""]) {
        const begin = performance.now();
        input.value = text;
        input.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        longest = Math.max(longest, performance.now() - begin);
      }
      return longest;
    });
    // 40 ms on an idle machine.
    expect(slowest).toBeLessThan(5_000);
    open.expectNoProblems();
  });

  it("has nodes that are gone on request, explained from the archive", async () => {
    const newest = Date.now() - 7_200_000;
    await using fleet = new TestFleet(
      { "worker-1": {}, "worker-old": { archived: { oldest: 0, newest } } },
      { explainNode: async (node) => `Node ${node}\n\nAnswered by the archive\n` },
    );
    await using open = await openFleet(fleet);
    const { page } = open;
    await rowOf(page, "worker-1").waitFor();
    expect(await namesIn(page)).toEqual(["worker-1"]);
    await page.getByRole("button", { name: "Gone" }).click();
    await rowOf(page, "worker-old")
      .filter({ hasText: "gone" })
      .filter({ hasText: "last record 2 h ago" })
      .waitFor();
    await page.getByRole("link", { name: "worker-old" }).click();
    await open.see(/Answered by the archive/);
    expect(await accessibilityProblems(page)).toEqual([]);
    open.expectNoProblems();
  });

  it.each([1_280, 360])(
    "has no accessibility problems at a width of %i, and works by keyboard",
    async (width) => {
      await using fleet = new TestFleet(troubled);
      await using open = await openFleet(fleet, width);
      await rowOf(open.page, "worker-3").filter({ hasText: "1 failing" }).waitFor();
      expect(await accessibilityProblems(open.page)).toEqual([]);
      expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] });
      expect(await keyboardProblems(open.page)).toEqual([]);
      open.expectNoProblems();
    },
  );

  it("says that it is old once the command has ended", async () => {
    const fleet = new TestFleet({ "worker-1": {} });
    const { host, hash } = new URL(await fleet.address());
    await using open = await OpenPage.open(browser, host, { expected: /ERR_CONNECTION_REFUSED|ERR_EMPTY/ });
    await open.goTo(hash);
    await rowOf(open.page, "worker-1").filter({ hasText: "dry run" }).waitFor();
    await fleet[Symbol.asyncDispose]();
    await open.see("What is shown is old: kubectl nodekeeper page does not answer.");
    open.expectNoProblems();
  });
});

describe("the page of a node", () => {
  it("is that of its agent: live, read-only, on an origin of its own", async () => {
    await using node = await startNode();
    node.addPod("web");
    await using fleet = new TestFleet({
      "worker-1": { address: node.agent.address },
      "worker-2": { address: node.agent.address },
    });
    await using open = await openFleet(fleet);
    const opened = open.page.context().waitForEvent("page");
    await open.page.getByRole("link", { name: "worker-1" }).click();
    const own = await opened;
    await own.locator("header .badge.mode").waitFor();
    expect(new URL(own.url()).origin).not.toBe(new URL(open.page.url()).origin);
    await own.getByRole("link", { name: "Pods" }).click();
    await own.getByText("default/web").first().waitFor();
    // Events arrive through the stream.
    node.addPod("later");
    await own.getByText("default/later").first().waitFor();
    // A worker, and styles that are loaded on demand.
    await own.getByRole("link", { name: "What if" }).click();
    await own.getByRole("heading", { name: "What if" }).waitFor();
    const foreign = await own.evaluate(async (address) => {
      const answer = await fetch(address).catch((error: Error) => error.message);
      return typeof answer === "string" ? answer : answer.status;
    }, open.page.url());
    expect(foreign).toMatch(/Failed to fetch/);
    await own.close();
    // Both are the same agent.
    await open.page.goto(`${open.page.url().split("#")[0]}#/compare?a=worker-1&b=worker-2&all=true`);
    await open.see("0 differences.", "eviction.enabled", /^memory-watch/);
    open.expectNoProblems();
  });

  it("says why there is none", async () => {
    await using fleet = new TestFleet({ "worker-1": { problem: "pod agent-worker-1 is Pending" } });
    await using open = await openFleet(fleet);
    const opened = open.page.context().waitForEvent("page");
    await open.page.getByRole("link", { name: "worker-1" }).click();
    await (await opened).getByText(/pod agent-worker-1 is Pending/).waitFor();
    open.expectNoProblems();
  });
});

describe("the pods of the cluster", () => {
  const pod = (name: string, node = "worker-1") => ({
    ...{ namespace: "default", name, node, uid: `uid-${name}`, phase: "Running", owner: "ReplicaSet web" },
    createdAt: Date.now() - 60_000,
  });

  it("are found by a part of the name, with their nodes", async () => {
    await using fleet = new TestFleet({ "worker-1": {} });
    fleet.pods.push(pod("web-1"), pod("web-2", ""), pod("db-0"));
    await using open = await openFleet(fleet);
    const { page } = open;
    await page.getByRole("link", { name: "Pods" }).click();
    await page.getByRole("searchbox").fill("web");
    await page.keyboard.press("Enter");
    await open.see("2 pods among 3.");
    const table = page.getByRole("table", { name: "Pods" });
    expect(await table.locator("tbody th").allTextContents()).toEqual(["default/web-1", "default/web-2"]);
    const address = await table
      .getByRole("link", { name: "default/web-1", exact: true })
      .getAttribute("href");
    expect(address).toBe("nodes/worker-1/#/pod/default/web-1?uid=uid-web-1");
    await open.see("not scheduled");
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await keyboardProblems(page)).toEqual([]);
    await page.getByRole("searchbox").fill("nothing");
    await page.getByRole("button", { name: "Search" }).click();
    await open.see("None of the 3 pods has such a name or UID.");
    open.expectNoProblems();
  });

  it("are explained in the words of the command, by the agent of the node or by all", async () => {
    const asked: string[] = [];
    await using fleet = new TestFleet(
      { "worker-1": {} },
      {
        explainPod: async (name, node) => {
          asked.push(`${name} ${node}`);
          if (node !== undefined) throw new NodekeeperError("notFound", `no record of pod ${name}`);
          return `Pod ${name}\n\nEvicted at the request of disk-io\n`;
        },
      },
    );
    fleet.pods.push(pod("web-1"));
    await using open = await openFleet(fleet);
    const { page } = open;
    await page.goto(`${page.url().split("#")[0]}#/pods?text=web`);
    await page.getByRole("link", { name: "Explain web-1" }).click();
    await open.see("no record of pod default/web-1");
    await page.getByRole("link", { name: "Ask all agents" }).click();
    await open.see(/Evicted at the request of disk-io/);
    expect(asked).toEqual(["default/web-1 worker-1", "default/web-1 undefined"]);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await overflow(page)).toEqual({ pixels: 0, of: [] });
  });

  it("say why they can't be listed", async () => {
    const pods = () => Promise.reject(new NodekeeperError("forbidden", "you may not list pods"));
    await using fleet = new TestFleet({ "worker-1": {} }, { pods });
    await using open = await openFleet(fleet);
    await open.page.goto(`${open.page.url().split("#")[0]}#/pods?text=web`);
    await open.see("The pods can't be listed: you may not list pods.");
  });
});

describe("the comparison of two nodes", () => {
  const settings = (perNode: number, maxAge: string) => ({
    eviction: { limits: { perNode }, records: { maxAge }, policies: [{ name: "batch", rule: maxAge }] },
  });

  it("marks what differs, and has what is equal on request", async () => {
    await using fleet = new TestFleet({
      "worker-1": { configuration: settings(1, "7d"), version: "0.1.0" },
      "worker-2": { configuration: settings(2, "7d"), version: "0.2.0", failing: { "disk-io": "timed out" } },
    });
    await using open = await openFleet(fleet);
    const { page } = open;
    await page.getByRole("link", { name: "Compare" }).click();
    await open.see("Choose two nodes.");
    await page.getByLabel("Node", { exact: true }).fill("worker-1");
    await page.getByLabel("compared with").fill("worker-2");
    await open.see("3 differences.");
    const rowsOf = (name: string) => page.getByRole("table", { name }).locator("tbody tr").allTextContents();
    expect(await rowsOf("Settings")).toEqual(["eviction.limits.perNode12differs"]);
    expect(await rowsOf("Node and agent")).toEqual(["agent0.1.00.2.0differs"]);
    expect(await rowsOf("Plugins")).toEqual(["disk-io (EvictionPlugin)absentregistered; timed outdiffers"]);
    await page.getByRole("button", { name: "Also what is equal" }).click();
    await open.see("eviction.records.maxAge", "kubeletVersion", "eviction.policies[batch].rule");
    expect(new URL(page.url()).hash).toBe("#/compare?a=worker-1&b=worker-2&all=true");
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await keyboardProblems(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 800 });
    expect(await overflow(page)).toEqual({ pixels: 0, of: [] });
    open.expectNoProblems();
  });

  it("says which node can't be read", async () => {
    await using fleet = new TestFleet({ "worker-1": {}, "worker-2": { problem: "pod agent-2 is Pending" } });
    await using open = await openFleet(fleet);
    await open.page.goto(`${open.page.url().split("#")[0]}#/compare?a=worker-1&b=worker-2`);
    await open.see("worker-2 can't be read: pod agent-2 is Pending.");
  });
});

it("the link works once", async () => {
  await using fleet = new TestFleet({ "worker-1": {} });
  await using first = await openFleet(fleet);
  expect(new URL(first.page.url()).hash).toBe("#/nodes");
  // The same browser may come back by its history: the path is the session.
  await first.page.reload();
  await rowOf(first.page, "worker-1").waitFor();
  const { host, hash } = new URL(await fleet.address());
  await using second = await OpenPage.open(browser, host, { expected: /status of 401/ });
  await second.goTo(hash);
  await second.see(/This page can't be opened: this link was used before/);
  await second.goTo("");
  first.expectNoProblems();
});
