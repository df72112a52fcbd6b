import { systemClock } from "@nodekeeper/core/lib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

const HOUR_MS = 3_600_000;
// What a time that was computed from two clocks would look like.
const WRONG_TIME = /NaN|Invalid Date|(?<![\d–-])-\d+(\.\d+)? (s|min|h|d)\b/;

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

/** The timeline with the list of what happened, whose text says what its picture shows. */
async function showTimeline(open: OpenPage): Promise<void> {
  await open.goTo("#/timeline");
  await open.see("worker-1", /memory-watch/);
  // The view before it may still be drawn, with tables of its own.
  const list = open.page.locator("details", { hasText: "As a list" });
  await list.waitFor();
  if ((await list.getAttribute("open")) === null) await list.getByText("As a list").click();
}

/** Waits for an eviction in the list, and returns when the browser had drawn it, milliseconds since the epoch. */
async function seeEvicted({ page }: OpenPage, name: string): Promise<number> {
  const row = page
    .getByRole("row")
    .filter({ hasText: /Eviction/ })
    .filter({ hasText: `default/${name}` });
  await row.first().waitFor();
  return performance.timeOrigin + performance.now();
}

it("an eviction appears on the timeline and in the pod's verdict after it was decided", async () => {
  await using node = await startNode();
  node.addPod("victim");
  node.addPod("witness");
  await using open = await OpenPage.open(browser, node.agent.address);
  await showTimeline(open);
  const seen = seeEvicted(open, "victim");
  await node.evict("victim");
  const seenAt = await seen;
  const { items } = await node.agent.api("eviction/evictions");
  const decided = items.find(({ name }: { name: string }) => name === "victim");
  // A figure to look at, and no limit: the machine may be busy.
  console.log(`eviction: on the page ${Math.round(seenAt - decided.at)} ms after it was decided`);

  await open.goTo("#/pod/default/victim");
  await open.see(/memory-watch/, /0\.93/);
  await open.goTo("#/pod/default/witness");
  await open.see(/witness/);
  open.expectNoProblems();
});

it("evictions appear while the browser's clock jumps, and no time is shown that can't be", async () => {
  await using node = await startNode();
  for (const name of ["first", "second", "third"]) node.addPod(name);
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.page.clock.install();
  await showTimeline(open);
  for (const [name, jumpMs] of [
    ["first", 30 * HOUR_MS],
    ["second", -30 * HOUR_MS],
    ["third", 0],
  ] as const) {
    await open.page.clock.setSystemTime(Date.now() + jumpMs);
    await node.evict(name);
    await seeEvicted(open, name);
    expect(await open.text()).not.toMatch(WRONG_TIME);
    for (const [hash, text] of [
      ["#/now", "Health"],
      ["#/plugins", "memory-watch"],
    ] as const) {
      await open.goTo(hash);
      await open.see(text);
      expect(await open.text()).not.toMatch(WRONG_TIME);
    }
    await open.goTo(`#/pod/default/${name}`);
    await open.see(/requested by memory-watch/);
    await showTimeline(open);
  }
  open.expectNoProblems();
});

it("evictions appear while the agent's clock jumps", async () => {
  let offsetMs = 0;
  await using node = await startNode({ clock: { ...systemClock, now: () => Date.now() + offsetMs } });
  for (const name of ["first", "second", "third"]) node.addPod(name);
  await using open = await OpenPage.open(browser, node.agent.address);
  await showTimeline(open);
  for (const [name, jumpMs] of [
    ["first", 3 * HOUR_MS],
    ["second", -3 * HOUR_MS],
    ["third", 0],
  ] as const) {
    offsetMs = jumpMs;
    await node.evict(name);
    await seeEvicted(open, name);
    expect(await open.text()).not.toMatch(WRONG_TIME);
  }
  open.expectNoProblems();
});
