import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type DevNode, startDevNode } from "./support/dev-node.ts";
import { accessibilityProblems, keyboardProblems, overflow } from "./support/in-page.ts";
import { OpenPage } from "./support/open-page.ts";

// One picture for each section of docs/page.md.
const PICTURED = [
  "search",
  "timeline",
  "pods",
  "round",
  "pod",
  "now",
  "plugins",
  "tree",
  "resources",
  "what-if",
];
const images = join(import.meta.dirname, "../../docs/images");

let dev: DevNode;
let browser: Browser;
/** "<namespace>/<name>" of a sample pod that was evicted. */
let evicted: string;
/** The round that selected it. */
let round: number;

beforeAll(async () => {
  dev = await startDevNode("--first-pressure", "5s");
  browser = await connectTo(inject("browser"));
  const ended = await until(
    "an eviction that has ended",
    async () => {
      const { items } = await dev.api("eviction/evictions");
      return items.find(({ outcome }: { outcome: unknown }) => outcome !== null);
    },
    { explain: dev.output },
  );
  evicted = `${ended.namespace}/${ended.name}`;
  round = ended.round;
});
afterAll(async () => {
  await browser?.close();
  await dev?.[Symbol.asyncDispose]();
});

interface View {
  name: string;
  hash(): string;
  /** What a user sees of the data of `nodekeeper dev`. */
  shows(): (string | RegExp)[];
  /** Before its picture is taken. */
  prepare?(page: Page): Promise<void>;
}

const views: View[] = [
  {
    name: "timeline",
    hash: () => "#/timeline",
    shows: () => [/sample-memory/, /example-eviction/, /cluster-dns/],
    // The command has not run for long: this is where there is something to see.
    prepare: (page) => page.getByRole("button", { name: "The last 1 min" }).click(),
  },
  { name: "pods", hash: () => "#/pod", shows: () => [evicted, /cluster-dns/] },
  {
    name: "pod",
    hash: () => `#/pod/${evicted}`,
    shows: () => [evicted, /example-eviction/, /sample-memory/],
  },
  { name: "rounds", hash: () => "#/round", shows: () => [/^Round \d+$/, /example-eviction/] },
  {
    name: "round",
    hash: () => `#/round/${round}`,
    shows: () => [/1 pod selected for eviction/, evicted, "example-eviction", /sample-memory .* > threshold/],
  },
  { name: "now", hash: () => "#/now", shows: () => [/PreferNoSchedule|No condition|None/] },
  {
    name: "search",
    hash: () => "#/resources/devices",
    shows: () => [/accelerators\.example\.com/],
    prepare: async (page) => {
      await page.keyboard.press("/");
      await page.getByRole("combobox").fill("accelerator");
      await page.getByText(/found\.$/).waitFor();
    },
  },
  { name: "plugins", hash: () => "#/plugins", shows: () => ["example-eviction", "example-reporter"] },
  {
    name: "plugin",
    hash: () => "#/plugins/example-eviction",
    shows: () => [/GetThresholdMet|ThresholdMet/i],
  },
  {
    name: "tree",
    hash: () => "#/resources",
    shows: () => [/CustomNodeResource/, /Socket 0/],
    prepare: async (page) => {
      for (const name of [/^Resources/, /^Socket 0/, /^NUMA node 0/, /^accelerators/, /^Pool/])
        await page.getByRole("treeitem", { name }).first().locator(".twist").click();
      await page
        .getByRole("treeitem", { name: /accelerator-0 held/ })
        .last()
        .click();
    },
  },
  { name: "objects", hash: () => "#/resources/objects", shows: () => [/widgets/, /example-reporter/] },
  { name: "resources", hash: () => "#/resources/topology", shows: () => [/Socket|NUMA/i] },
  { name: "devices", hash: () => "#/resources/devices", shows: () => [/accelerators\.example\.com/] },
  {
    name: "what-if",
    hash: () => "#/what-if?dryRunPlugins=*",
    shows: () => [/rounds replayed/, /victims recorded/],
  },
];

describe.each(views)("the view $name", ({ name, hash, shows, prepare }) => {
  it.each(["light", "dark"] as const)("shows live data, for every user: %s", async (colorScheme) => {
    await using open = await OpenPage.open(browser, dev.address, { colorScheme });
    await open.goTo(hash());
    await open.see("dev-node", /Live: pods are evicted/, ...shows());
    await eventually(async () => expect(await accessibilityProblems(open.page)).toEqual([]));
    await prepare?.(open.page);
    if (process.env.UPDATE_SCREENSHOTS && PICTURED.includes(name))
      await takeScreenshot(open, `page-${name}-${colorScheme}.png`);
    open.expectNoProblems();
  });

  it("is used by keyboard", async () => {
    await using open = await OpenPage.open(browser, dev.address);
    await open.goTo(hash());
    await open.see(...shows());
    expect(await keyboardProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("fits a phone and a wide screen", async () => {
    await using open = await OpenPage.open(browser, dev.address, { width: 360, height: 740 });
    await open.goTo(hash());
    await open.see(...shows());
    for (const width of [360, 1920]) {
      await open.page.setViewportSize({ width, height: 800 });
      await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
    }
    open.expectNoProblems();
  });
});

it("the timeline is moved, zoomed and made live again by keys, and its address can be sent to another person", async () => {
  await using open = await OpenPage.open(browser, dev.address);
  await open.goTo("#/timeline");
  await open.see(/sample-memory/);
  const { keyboard } = open.page;
  await keyboard.press("ArrowLeft");
  const moved = await until("the address has what is shown", () => shownIn(open.page));
  await keyboard.press("+");
  const zoomed = await until("less is shown", () => {
    const shown = shownIn(open.page);
    return shown && shown.to - shown.from < moved.to - moved.from && shown;
  });
  await keyboard.press("]");
  await open.page.getByRole("complementary", { name: "Detail" }).waitFor();
  const address = await until("the address has the mark", () => {
    const { hash } = new URL(open.page.url());
    return /at=mark/.test(hash) && hash;
  });

  await using other = await OpenPage.open(browser, dev.address);
  await other.goTo(address);
  await other.page.getByRole("complementary", { name: "Detail" }).waitFor();
  const shown = shownIn(other.page)!;
  expect(shown.to - shown.from).toBe(zoomed.to - zoomed.from);
  other.expectNoProblems();

  await keyboard.press("Escape");
  await open.page.getByRole("complementary", { name: "Detail" }).waitFor({ state: "hidden" });
  await keyboard.press("p");
  await until("it is live again", () => shownIn(open.page) === undefined);
  open.expectNoProblems();
});

/** The stretch of time in the address; undefined where it is the last minutes. */
function shownIn(page: Page): { from: number; to: number } | undefined {
  const query = new URLSearchParams(new URL(page.url()).hash.split("?")[1]);
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  return from > 0 ? { from, to } : undefined;
}

async function takeScreenshot({ page }: OpenPage, file: string): Promise<void> {
  mkdirSync(images, { recursive: true });
  const path = join(images, file);
  await page.screenshot({ path, animations: "disabled" });
  expect(statSync(path).size, file).toBeLessThan(180_000);
}
