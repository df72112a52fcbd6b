import { until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { podNamed } from "../support/eviction-plugin.ts";
import { connectTo } from "./support/chromium.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";
import { selectMark } from "./support/select-mark.ts";

let browser: Browser;
let node: PageNode;
/** The round that selected the first of two pods, and queued the other. */
let id: number;
let victim: string;
let queued: string;

beforeAll(async () => {
  browser = await connectTo(inject("browser"));
  node = await startNode({ flags: { evictionBurst: "1" } });
  const pods = ["one", "two"].map((name) => ({ name, ...node.addPod(name, "shop") }));
  node.addPod("witness");
  node.pressure.evictPods = () => ({
    evictPods: pods.map(({ name, uid }) => ({
      pod: podNamed(name, uid, "shop"),
      reason: "uses too much",
      forceEvict: true,
    })),
  });
  await until("one is evicted", () => node.cluster.evictions().length > 0, {
    explain: () => node.agent.logLines.slice(-5),
  });
  node.pressure.evictPods = () => ({ evictPods: [] });
  const [first] = (await node.agent.api("eviction/evictions")).items;
  id = first.round;
  victim = first.name;
  queued = victim === "one" ? "two" : "one";
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
});

async function openAt(hash: string): Promise<OpenPage> {
  const open = await OpenPage.open(browser, node.agent.address);
  await open.goTo(hash);
  await open.see("worker-1");
  return open;
}

it("is reached from the pod, and shows what was decided about each candidate and why", async () => {
  await using open = await openAt(`#/pod/shop/${victim}`);
  const { page } = open;
  await page
    .getByRole("link", { name: `The whole of round ${id}`, exact: true })
    .first()
    .click();
  await open.see(`Round ${id}`, "1 pod selected for eviction.");
  const row = (table: string, text: RegExp) =>
    page.getByRole("table", { name: table }).getByRole("row").filter({ hasText: text });
  const decided = row("Pods about which something was decided", new RegExp(`shop/${victim}`));
  await decided.filter({ hasText: /selected.*memory-watch.*forced: uses too much/ }).waitFor();
  await row("What the plugins reported", /memory-watch/)
    .filter({ hasText: /2, 2 of them forced/ })
    .waitFor();
  await row("Requests that were not granted", new RegExp(`shop/${queued}`))
    .filter({ hasText: /burst/ })
    .waitFor();
  const candidates = "Candidates by rank; 1 is evicted first";
  await row(candidates, new RegExp(`shop/${queued}`))
    .filter({ hasText: "queued" })
    .waitFor();
  await row(candidates, /default\/witness/)
    .filter({ hasText: "not requested" })
    .waitFor();
  await page
    .getByRole("button", { name: /^Compare of/ })
    .first()
    .click();
  await page.getByRole("table", { name: /^Comparison of/ }).waitFor();
  await open.see("Policy of that time", "at most 1");

  const json = await page.getByRole("link", { name: "JSON" }).getAttribute("href");
  const { records } = await node.agent.api(json!.replace("api/v1/", ""));
  expect(records[0].id).toBe(id);
  await page.getByRole("link", { name: /What if another policy/ }).click();
  await open.see(/rounds? replayed/);
  open.expectNoProblems();
});

it("is reached from its mark on the timeline, and its pods from it", async () => {
  await using open = await openAt("#/timeline");
  const { page } = open;
  const detail = page.getByRole("complementary", { name: "Detail" });
  const link = detail.getByRole("link", { name: `Round ${id}`, exact: true });
  await selectMark(page, link);
  await link.click();
  await open.see("1 pod selected for eviction.");
  await page.getByRole("link", { name: "Timeline" }).last().click();
  await open.see(/memory-watch/);
  expect(new URL(page.url()).hash).toMatch(/^#\/timeline\?from=\d+&to=\d+/);
  open.expectNoProblems();
});

it.each(["999999", "0", "not-a-number"])("what to do is shown where there is no round %s", async (text) => {
  await using open = await openAt(`#/round/${text}`);
  await open.see(`No record of round ${text} exists:`, "eviction.records.maxAge");
  await open.page.getByRole("link", { name: "The last rounds" }).click();
  await open.page.getByRole("link", { name: `Round ${id}`, exact: true }).click();
  await open.see("1 pod selected for eviction.");
  open.expectNoProblems();
});

it("is listed when it is recorded", async () => {
  await using open = await openAt("#/round");
  await open.see(`Round ${id}`);
  node.addPod("later");
  await node.evict("later");
  const listed = open.page.getByRole("row").filter({ hasText: "default/later" });
  await listed
    .getByRole("link", { name: /^Round \d+$/ })
    .first()
    .click();
  await open.see("1 pod selected for eviction.", "default/later");
  open.expectNoProblems();
});
