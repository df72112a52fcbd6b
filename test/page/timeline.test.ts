import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type NodePod, type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";
import { selectMark } from "./support/select-mark.ts";

let browser: Browser;
let node: PageNode;
let crashing: NodePod;

beforeAll(async () => {
  browser = await connectTo(inject("browser"));
  node = await startNode();
  node.addPod("calm");
  node.addPod("victim", "shop");
  crashing = node.addPod("crashing");
  // Readings that differ, and an event of each kind.
  await until("the pods are listed", async () => (await node.agent.api("pods")).items.length === 3);
  node.runtime.exit(crashing.container, 137, "OOMKilled");
  node.runtime.runContainer(crashing.sandbox, { name: "app", attempt: 1 });
  await node.evict("victim");
  await until("the exit is in the log", async () =>
    (await node.agent.api("events")).items.some(
      ({ event }: { event: { reason: string } }) => event?.reason === "OOMKilled",
    ),
  );
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
});

async function openTimeline(hash = "#/timeline"): Promise<OpenPage> {
  const open = await OpenPage.open(browser, node.agent.address);
  await open.goTo(hash);
  await open.see("worker-1", /memory-watch/, "crashing", "calm");
  return open;
}

const hashOf = ({ page }: OpenPage) => page.evaluate(() => location.hash);
const rangeOf = async (open: OpenPage) => {
  const query = new URLSearchParams((await hashOf(open)).split("?")[1]);
  return { from: Number(query.get("from")), to: Number(query.get("to")) };
};
// biome-ignore lint/performance/useDomNodeTextContent: as a user sees it, cells apart
const textOf = (locator: Locator) => locator.innerText();
const button = ({ page }: OpenPage, name: string) => page.getByRole("button", { name, exact: true });

it.each(["before", "after"])(
  "%s the events are read, a pod opens to its containers, and a container to how it ended",
  async (when) => {
    await using open = await OpenPage.open(browser, node.agent.address);
    const { page } = open;
    const notice = /The log of containers starts at \d\d:\d\d:\d\d/;
    // Without events, containers are those that the runtime lists.
    const released = Promise.withResolvers<void>();
    if (when === "after") released.resolve();
    await page.route("**/api/v1/events?*", async (route) => {
      await released.promise;
      await route.continue();
    });
    await open.goTo("#/timeline");
    await open.see("crashing", "calm");
    if (when === "after") await open.see(notice);
    await page
      .getByRole("button", { name: /crashing/ })
      .first()
      .click();
    const detail = page.getByRole("complementary", { name: "Detail" });
    await eventually(async () =>
      expect(await textOf(detail)).toMatch(/default\/crashing[\s\S]*OOMKilled \(exit 137\)/),
    );
    await detail.getByRole("button", { name: "app" }).last().click();
    await eventually(async () =>
      expect(await textOf(detail)).toMatch(/Exit code\s+137\s+Reason\s+OOMKilled/),
    );
    expect(await detail.getByRole("link", { name: /Pod default\/crashing/ }).getAttribute("href")).toMatch(
      /^#\/pod\/default\/crashing/,
    );
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
    expect(await page.getByText(notice).isVisible()).toBe(when === "after");
    released.resolve();
    await open.see(notice);
    open.expectNoProblems();
  },
);

it("marks are reached by key, and what is selected is in an address that another user can open", async () => {
  await using open = await openTimeline();
  const { page } = open;
  const detail = page.getByRole("complementary", { name: "Detail" });
  await selectMark(page, detail.getByRole("heading", { name: "Eviction", exact: true }));
  await button(open, "❚❚ Pause").click();
  await eventually(async () => expect(await hashOf(open)).toMatch(/from=\d+&to=\d+&at=mark/));

  await using other = await openTimeline(await hashOf(open));
  const there = other.page.getByRole("complementary", { name: "Detail" });
  await eventually(async () => expect(await textOf(there)).toBe(await textOf(detail)));
  await there.getByRole("link", { name: "Pod shop/victim" }).click();
  await other.see(/memory-watch/, "shop/victim");
  open.expectNoProblems();
  other.expectNoProblems();
});

it("the axis is paused, moved, zoomed and dragged by mouse and keys, and moves again when it is live", async () => {
  await using open = await openTimeline();
  const { page } = open;
  await button(open, "❚❚ Pause").click();
  await eventually(async () => expect((await rangeOf(open)).to).toBeGreaterThan(0));
  const paused = await rangeOf(open);
  expect(paused.to - paused.from).toBe(600_000);

  await page.keyboard.press("ArrowLeft");
  await eventually(async () => expect((await rangeOf(open)).from).toBe(paused.from - 60_000));
  await page.keyboard.press("+");
  await eventually(async () => {
    const { from, to } = await rangeOf(open);
    expect(to - from).toBe(300_000);
  });
  const before = await rangeOf(open);
  const box = (await page.locator(".tl-ticks").boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 100, y, { steps: 3 });
  await page.mouse.up();
  await eventually(async () => {
    const { from, to } = await rangeOf(open);
    expect(from).toBeGreaterThan(before.from);
    expect(to - from).toBeLessThan(100_000);
  });
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, 2_000);
  await page.keyboard.up("Control");
  await eventually(async () => {
    const { from, to } = await rangeOf(open);
    expect(to - from).toBeGreaterThan(200_000);
  });
  await button(open, "▶ Live").click();
  await eventually(async () => expect(await hashOf(open)).toBe("#/timeline"));
  await page.goBack();
  await eventually(async () => expect((await rangeOf(open)).to).toBeGreaterThan(0));
  open.expectNoProblems();
});

it("the past is read as far as the log goes, and it shows where that is", async () => {
  await using open = await openTimeline();
  const { page } = open;
  await open.see(/The log of containers starts at \d\d:\d\d:\d\d/);
  await page.getByRole("textbox", { name: "Time" }).fill("2026-01-02T03:04:05");
  await page.keyboard.press("Enter");
  await open.see(/No pods are known in this stretch of time/);
  const { from, to } = await rangeOf(open);
  expect((from + to) / 2).toBe(Date.UTC(2026, 0, 2, 3, 4, 5));
  // The next mark after it, wherever that is.
  await button(open, "Mark ›").click();
  await open.see("crashing", /Agent started|registered/);
  open.expectNoProblems();
});

it("pods are found by a part of their name, and all of it is there as a list", async () => {
  await using open = await openTimeline();
  const { page } = open;
  await page.getByRole("searchbox", { name: "Pods" }).fill("default/CRA");
  await open.see("1 of 3");
  await page.getByText("As a list").click();
  const pods = page.getByRole("table", { name: "Pods" });
  await eventually(async () =>
    expect(await textOf(pods)).toMatch(/default\/crashing\s+app: runs for .*; failed 1 time/),
  );
  expect(await textOf(pods)).not.toContain("calm");
  await eventually(async () =>
    expect(await textOf(page.getByRole("table", { name: /What happened/ }))).toMatch(
      /Eviction: shop\/victim/,
    ),
  );
  open.expectNoProblems();
});
