import { silentLogger } from "@nodekeeper/core/lib";
import {
  customNodeResource,
  type Plugin,
  serveDeviceDriver,
  serveReporterPlugin,
  status,
} from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type GoodPlugin, startGoodPlugin } from "../support/plugins.ts";
import { connectTo } from "./support/chromium.ts";
import { type DevNode, startDevNode } from "./support/dev-node.ts";
import { accessibilityProblems, keyboardProblems, overflow } from "./support/in-page.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

const rowNames = (open: OpenPage) => open.page.locator("main tbody th a").allInnerTexts();

describe("plugins", () => {
  let node: PageNode;
  beforeAll(async () => {
    node = await startNode();
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  it("one that fails comes first with what to do, but not while the keyboard is in the list", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/plugins");
    // Until it has registered, a plugin is a row of its socket.
    for (const name of ["memory-watch", "widgets", "gpu.example.com"])
      await open.page.getByRole("link", { name, exact: true }).waitFor();
    await open.page.getByRole("link", { name: "memory-watch" }).focus();
    const before = await rowNames(open);
    const reporter = serveReporterPlugin({
      name: "short-lived",
      socketDir: node.agent.pluginDir,
      log: silentLogger,
      async *report(signal) {
        yield [];
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    await reporter.ready;
    // A plugin of which nothing was received is not lost, but forgotten.
    await until("its report is received", async () => {
      const rows: { name: string; contactAt?: number }[] = await node.agent.api("plugins");
      return rows.find(({ name }) => name === "short-lived")?.contactAt;
    });
    await reporter.stop();
    await open.page.locator("tr", { hasText: "short-lived" }).filter({ hasText: "failing" }).waitFor();
    expect(await rowNames(open)).toEqual([...before, "short-lived"]);
    // biome-ignore lint/performance/useDomNodeTextContent: what a user sees
    expect(await open.page.evaluate(() => (document.activeElement as HTMLElement).innerText)).toBe(
      "memory-watch",
    );

    await open.page.getByRole("link", { name: "Now" }).focus();
    await eventually(async () => {
      const names = await rowNames(open);
      expect(names.indexOf("short-lived")).toBeLessThan(names.indexOf("memory-watch"));
    });
    await open.see(/NK1808/, /Start the plugin again before the grace period ends/);
    open.expectNoProblems();
  });

  it("one has its last exchange, and how long its calls take in a plot and in words", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/plugins/memory-watch");
    await open.see("ThresholdMet", "Registration socket", /\d+ calls?: last/);
    await open.page
      .getByRole("img", { name: /calls?: last .* median .* longest/ })
      .first()
      .waitFor();
    await open.page.locator("summary", { hasText: "Answer" }).first().click();
    await open.see(/"/);
    expect(await accessibilityProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("a driver has what is not published as it reported it, each with ID, time and place", async () => {
    const driver = serveDeviceDriver({
      name: "sloppy.example.com",
      socketDir: node.agent.pluginDir,
      log: silentLogger,
      async *devices() {
        yield [{ devices: [{ name: "d-0" }, { name: "Bad<b>Name" }] }];
      },
    });
    try {
      await using open = await OpenPage.open(browser, node.agent.address);
      await open.goTo("#/plugins/sloppy.example.com");
      await open.see("Not published or accepted as the driver reported it: 1");
      const row = open.page.getByRole("row", { name: /NK1503/ });
      await expect.poll(() => row.textContent()).toMatch(/ ago[\s\S]*device Bad<b>Name[\s\S]*name: /);
      for (const width of [360, 1280]) {
        await open.page.setViewportSize({ width, height: 800 });
        await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
      }
      expect(await accessibilityProblems(open.page)).toEqual([]);
      open.expectNoProblems();
    } finally {
      await driver.stop();
    }
  });

  it("1,200 devices of a driver are shown in pages, and the arrow keys lead through them", async () => {
    const driver: Plugin = serveDeviceDriver({
      name: "many.example.com",
      socketDir: node.agent.pluginDir,
      log: silentLogger,
      async *devices() {
        yield [{ devices: Array.from({ length: 1_200 }, (_, at) => ({ name: `d-${at}` })) }];
      },
    });
    try {
      await using open = await OpenPage.open(browser, node.agent.address);
      await open.goTo("#/resources/devices?driver=many.example.com");
      await open.see("1000 reported", "Page 1 of 2");
      const cells = open.page.locator("ul.devices button");
      expect(await cells.count()).toBe(1_000);
      await cells.first().focus();
      await open.page.keyboard.press("ArrowRight");
      await open.page.keyboard.press("Enter");
      await open.page.getByRole("region", { name: "d-1", exact: true }).waitFor();
      expect(new URL(open.page.url()).hash).toContain("device=many.example.com%2Fworker-1%2Fd-1");
      await open.page.getByRole("button", { name: "Next 1000" }).click();
      await open.see("200 reported", "Page 2 of 2");
      open.expectNoProblems();
    } finally {
      await driver.stop();
    }
  });
});

// Two sockets, each with two NUMA nodes, each with two devices of the driver, and what pods hold of them.
const twoSockets = (holders: Readonly<Record<string, string>>) => {
  const cpus = (cpu: number) => ({ cpu: String(cpu), memory: `${cpu * 4}Gi` });
  const allocation = (pod: string, requests: Record<string, string>) => ({
    consumer: `default/${pod}/uid-${pod}`,
    requests,
  });
  const device = (name: string) => ({
    type: "DRADevice",
    name: `gpu.example.com/worker-1/${name}`,
    resources: { capacity: { "gpu.example.com": "1" }, allocatable: { "gpu.example.com": "1" } },
    ...(holders[name] ? { allocations: [allocation(holders[name], { "gpu.example.com": "1" })] } : {}),
  });
  const numa = (id: number) => ({
    type: "Numa",
    name: String(id),
    resources: { capacity: cpus(16), allocatable: cpus(15) },
    allocations: [
      ...[...new Set([`gpu-${2 * id}`, `gpu-${2 * id + 1}`].flatMap((name) => holders[name] ?? []))].map(
        (pod) => allocation(pod, { cpu: "4", memory: "8Gi" }),
      ),
    ],
    children: [device(`gpu-${2 * id}`), device(`gpu-${2 * id + 1}`)],
  });
  const socket = (id: number) => ({
    type: "Socket",
    name: String(id),
    resources: { capacity: cpus(32), allocatable: cpus(30) },
    children: [numa(2 * id), numa(2 * id + 1)],
  });
  return customNodeResource(status("topologyZone", [socket(0), socket(1)]));
};

describe("topology of two sockets", () => {
  let node: PageNode;
  let reporter: GoodPlugin;
  beforeAll(async () => {
    node = await startNode();
    reporter = await startGoodPlugin(
      node.agent.pluginDir,
      "topology",
      twoSockets({ "gpu-0": "single", "gpu-2": "spread", "gpu-5": "spread", "gpu-6": "spread" }),
    );
  });
  afterAll(async () => {
    await reporter?.stop();
    await node?.[Symbol.asyncDispose]();
  });

  it("each socket has its own NUMA nodes, devices and pods; a pod that is on both is marked on both", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/resources/topology");
    await open.see("Socket 0", "Socket 1");
    const sockets = open.page.locator("main ul.zones > li.zone").filter({ hasText: "Socket" });
    const holdersOf = (zone: Locator) => zone.getByRole("list", { name: "Held by" }).getByRole("link");
    for (const [at, numas, gpus, pods] of [
      [0, ["NUMA node 0", "NUMA node 1"], ["gpu-0", "gpu-1", "gpu-2", "gpu-3"], ["single", "spread"]],
      [1, ["NUMA node 2", "NUMA node 3"], ["gpu-4", "gpu-5", "gpu-6", "gpu-7"], ["spread"]],
    ] as const) {
      const socket = sockets.nth(at);
      const titles = await socket.locator(".zone.part > .title b").allInnerTexts();
      expect(titles).toEqual(numas);
      const devices = await socket.locator(".zone.device > .title b a").allInnerTexts();
      expect(devices).toEqual(gpus);
      expect(new Set(await holdersOf(socket).allInnerTexts())).toEqual(
        new Set(pods.map((pod) => `default/${pod}`)),
      );
    }
    const second = sockets.nth(1).locator(".zone.part").first();
    await expect.poll(() => second.textContent()).toMatch(/4 of 15 held[\s\S]*8 GiB of 60 GiB held/);

    const spread = open.page.locator(".holder", { hasText: "default/spread" });
    expect(await spread.count()).toBe(6);
    await spread.first().getByRole("link").focus();
    await expect.poll(() => open.page.locator(".holder.same").count()).toBe(6);

    for (const width of [360, 768, 1280, 1920]) {
      await open.page.setViewportSize({ width, height: 800 });
      await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
    }
    // Beside each other where there is room for both.
    const [left, right] = [await sockets.nth(0).boundingBox(), await sockets.nth(1).boundingBox()];
    expect(left!.y).toBe(right!.y);
    expect(right!.x).toBeGreaterThan(left!.x + left!.width - 1);
    expect(await accessibilityProblems(open.page)).toEqual([]);
    expect(await keyboardProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("is drawn again when a pod gets a device, and what has the focus keeps it", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/resources/topology");
    const device = open.page.locator(".zone.device", { hasText: "gpu-1" });
    await device.filter({ hasText: "free" }).waitFor();
    await device.getByRole("link", { name: "gpu-1" }).focus();
    reporter.say(twoSockets({ "gpu-1": "late" }));
    await device.filter({ hasText: "default/late" }).filter({ hasText: "held" }).waitFor();
    await open.seeNoLonger("default/spread");
    expect(await open.page.evaluate(() => document.activeElement?.textContent)).toBe("gpu-1");
    await open.page.keyboard.press("Enter");
    await open.page.getByRole("region", { name: "gpu-1", exact: true }).waitFor();
    open.expectNoProblems();
  });
});

describe("the tree of resources", () => {
  let node: PageNode;
  let reporter: GoodPlugin;
  const amounts = (memory: string, pool: number) =>
    customNodeResource(
      status("resources", { capacity: { memory: "24684096Ki" }, allocatable: { memory } }),
      status("resourcePool", { size: pool }),
    );
  beforeAll(async () => {
    node = await startNode();
    reporter = await startGoodPlugin(node.agent.pluginDir, "amounts", amounts("20Gi", 3));
  });
  afterAll(async () => {
    await reporter?.stop();
    await node?.[Symbol.asyncDispose]();
  });
  const row = (open: OpenPage, name: string | RegExp) => open.page.getByRole("treeitem", { name });
  const focused = (open: OpenPage) =>
    // biome-ignore lint/performance/useDomNodeTextContent: what a user sees
    open.page.evaluate(() => (document.activeElement as HTMLElement).innerText);
  const query = (open: OpenPage) => new URLSearchParams(new URL(open.page.url()).hash.split("?")[1]);

  it("has amounts with units, is walked by the keyboard, and its address has what is open and selected", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/resources");
    await row(open, /CustomNodeResource/).waitFor();
    await row(open, "Resources").first().locator(".twist").click();
    await row(open, /memory 20 GiB of 23.5 GiB/).waitFor();
    await row(open, /^▾ worker-1/)
      .or(row(open, /worker-1/))
      .first()
      .focus();
    const { keyboard } = open.page;
    await keyboard.press("End");
    await expect.poll(() => focused(open)).toContain("gpu.example.com");
    await keyboard.press("ArrowRight");
    await row(open, /Pool worker-1 2 devices/).waitFor();
    await keyboard.press("ArrowRight");
    await keyboard.press("ArrowRight");
    await row(open, /gpu-1 reported/).waitFor();
    await keyboard.press("ArrowDown");
    await keyboard.press("Enter");
    await open.page.getByRole("region", { name: "Selected: gpu-0" }).getByText("x1").waitFor();
    expect(query(open).get("item")).toBe("driver gpu.example.com/worker-1/gpu-0");
    expect(await accessibilityProblems(open.page)).toEqual([]);

    await using other = await OpenPage.open(browser, node.agent.address, { width: 360, height: 740 });
    await other.goTo(new URL(open.page.url()).hash);
    await other.page.getByRole("region", { name: "Selected: gpu-0" }).waitFor();
    await row(other, /gpu-0/).and(other.page.locator("[aria-selected=true]")).waitFor();
    expect(await accessibilityProblems(other.page)).toEqual([]);
    for (const width of [360, 1440])
      await other.page
        .setViewportSize({ width, height: 740 })
        .then(() =>
          eventually(async () => expect(await overflow(other.page)).toEqual({ pixels: 0, of: [] })),
        );
    other.expectNoProblems();

    await keyboard.press("ArrowLeft");
    await keyboard.press("ArrowLeft");
    await row(open, /gpu-1/).waitFor({ state: "detached" });
    expect(await keyboardProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("marks a value that changes, with what it was, by a mark and by words, and in a closed part too", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/resources/tree?open=node|CustomNodeResource|CustomNodeResource/status/resources");
    await row(open, /memory 20 GiB/).waitFor();
    reporter.say(amounts("18Gi", 4));
    await row(open, /memory 18 GiB of 23.5 GiB ◆ was 20 GiB/).waitFor();
    await row(open, /resourcePool ◆ changed inside/).waitFor();
    const mark = row(open, /was 20 GiB/);
    expect(await mark.evaluate((element) => getComputedStyle(element).animationName)).toBe("none");
    await open.page.emulateMedia({ reducedMotion: "no-preference" });
    expect(await mark.evaluate((element) => getComputedStyle(element).animationName)).toBe("changed");
    expect(await accessibilityProblems(open.page)).toEqual([]);
    await mark.waitFor({ state: "detached" });
    await row(open, /memory 18 GiB/).waitFor();
    open.expectNoProblems();
  });
});

describe("resources of nodekeeper dev", () => {
  let dev: DevNode;
  beforeAll(async () => {
    dev = await startDevNode();
    await until("the claims are prepared", async () => {
      const [driver] = await dev.api("claims");
      return driver?.claims.length === 2 ? driver : undefined;
    });
  });
  afterAll(() => dev?.[Symbol.asyncDispose]());

  it("the topology has sockets, NUMA nodes and devices with the pods that hold them", async () => {
    await using open = await OpenPage.open(browser, dev.address);
    await open.goTo("#/resources/topology");
    await open.see("Socket 0", "NUMA node 0", /default\/training-/, /default\/inference-/);
    for (const width of [360, 1920]) {
      await open.page.setViewportSize({ width, height: 800 });
      await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
    }
    expect(await accessibilityProblems(open.page)).toEqual([]);
    await open.page.getByRole("link", { name: /default\/inference-/ }).click();
    await open.page.getByRole("heading", { name: "Pods" }).waitFor();
    open.expectNoProblems();
  });

  it("devices have the claim and the pod that hold them, and what is wrong with one", async () => {
    await using open = await OpenPage.open(browser, dev.address);
    await open.goTo("#/resources/devices");
    await open.see("3 held", /registered: the agent prepares its claims/);
    await open.page
      .getByRole("button", { name: /: held by claim default\/training-.* for pod default\/training-/ })
      .first()
      .click();
    await open.see("Held by claim", "driverVersion");
    await open.page.getByRole("button", { name: /unhealthy: simulated failure/ }).waitFor();
    expect(await accessibilityProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("fields of an object are found by path, value and plugin", async () => {
    await using open = await OpenPage.open(browser, dev.address);
    await open.goTo("#/resources/objects");
    await open.see(/^\d+ fields/);
    await open.page.getByRole("searchbox").fill("example-reporter allocatable");
    await open.see(/fields? found/, "status.resources.allocatable.example.nodekeeper.dev/widgets");
    await open.seeNoLonger("spec.nodeResourceProperties[cpu].propertyName");
    await open.page.getByRole("searchbox").fill("no field has these words");
    await open.see("No field has that.");
    open.expectNoProblems();
  });
});
