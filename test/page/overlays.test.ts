import { until } from "@nodekeeper/testing/until";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type DevNode, startDevNode } from "./support/dev-node.ts";
import { accessibilityProblems, overflow } from "./support/in-page.ts";
import { OpenPage, type PageOptions } from "./support/open-page.ts";

let dev: DevNode;
let browser: Browser;
/** "<namespace>/<name>" of a sample pod that was evicted, and the round that selected it. */
let evicted: { pod: string; round: number };
/** A taint that the agent set. */
let taint: string;

beforeAll(async () => {
  dev = await startDevNode("--first-pressure", "5s");
  browser = await connectTo(inject("browser"));
  const { namespace, name, round } = await until(
    "an eviction",
    async () => (await dev.api("eviction/evictions")).items[0],
    { explain: dev.output },
  );
  evicted = { pod: `${namespace}/${name}`, round };
  taint = await until("a taint", async () => (await dev.api("eviction/node")).taints?.[0]?.taint, {
    explain: dev.output,
  });
});
afterAll(async () => {
  await browser?.close();
  await dev?.[Symbol.asyncDispose]();
});

async function openAt(hash: string, options?: PageOptions): Promise<OpenPage> {
  const open = await OpenPage.open(browser, dev.address, options);
  await open.goTo(hash);
  await open.see("dev-node");
  return open;
}

const field = ({ page }: OpenPage) => page.getByRole("combobox", { name: /^Search/ });
const options = ({ page }: OpenPage) => page.getByRole("listbox", { name: "Results" }).getByRole("option");
const selected = (open: OpenPage) => open.page.getByRole("option", { selected: true });
const hashOf = ({ page }: OpenPage) => decodeURIComponent(new URL(page.url()).hash);

/** Opens the search by its key, and searches. */
async function search(open: OpenPage, text: string): Promise<void> {
  await open.page.keyboard.press("/");
  await field(open).waitFor();
  await open.page.keyboard.type(text);
  await open.page
    .getByRole("dialog", { name: "Search" })
    .getByText(/found\.|^The first|^Nothing has/)
    .waitFor();
}

/** Searches until something is found: a taint is there only while its condition is. */
async function find(open: OpenPage, text: string, option: string | RegExp): Promise<Locator> {
  return await until(text, async () => {
    await search(open, text);
    const found = options(open).filter({ hasText: option });
    if ((await found.count()) > 0) return found.first();
    await open.page.keyboard.press("Escape");
    await field(open).waitFor({ state: "detached" });
    return undefined;
  });
}

describe("the search", () => {
  it("finds something of every kind, and opens it", async () => {
    await using open = await openAt("#/now");
    const wanted: [text: string, option: string | RegExp, shows: string | RegExp][] = [
      [evicted.pod, `pod ${evicted.pod}`, evicted.pod],
      ["example-eviction", /^plugin example-eviction/, "Last exchange"],
      ["sample-memory", /^signal sample-memory of example-eviction/, "Last 24 hours"],
      [taint, `taint ${taint}`, "Conditions and taints"],
      ["pool accel", /^pool accelerators\.example\.com\/dev-node/, /^Pool dev-node/],
      [
        "accelerator-5",
        /^device accelerators\.example\.com\/dev-node\/accelerator-5/,
        /^accelerator-5 pool dev-node/,
      ],
      ["claim training", /^claim default\/training-/, "Claims"],
      [`round ${evicted.round}`, `round Round ${evicted.round}`, "Policy of that time"],
      ["what", "view What if", /rounds? replayed/],
      ["customnode", "object CustomNodeResource", "Fields"],
    ];
    for (const [text, option, shows] of wanted) {
      const found = await find(open, text, option);
      await found.click();
      await field(open).waitFor({ state: "detached" });
      await open.see(shows);
    }
    open.expectNoProblems();
  });

  it("is used by keyboard alone, and leaves the focus in the view", async () => {
    await using open = await openAt("#/now");
    await search(open, "accelerator");
    expect(await accessibilityProblems(open.page)).toEqual([]);
    const names = await options(open).allTextContents();
    const isSelected = (at: number) =>
      selected(open)
        .filter({ hasText: names.at(at)! })
        .waitFor();
    await isSelected(0);
    await open.page.keyboard.press("ArrowDown");
    await isSelected(1);
    await open.page.keyboard.press("ArrowUp");
    await open.page.keyboard.press("ArrowUp");
    await isSelected(-1);
    await open.page.keyboard.press("ArrowDown");
    await isSelected(0);
    const active = await field(open).getAttribute("aria-activedescendant");
    expect(await open.page.locator(`#${active}`).getAttribute("aria-selected")).toBe("true");
    await field(open).fill("plugin example-eviction");
    await selected(open).filter({ hasText: "example-eviction" }).waitFor();
    await open.page.keyboard.press("Enter");
    await open.see("Last exchange");
    expect(hashOf(open)).toBe("#/plugins/example-eviction");
    expect(await open.page.evaluate(() => document.activeElement?.id)).toBe("main");
    await open.page.goBack();
    await open.see("What was done?");
    open.expectNoProblems();
  });

  it("is closed by Escape, and says so where nothing is found", async () => {
    await using open = await openAt("#/plugins");
    const link = open.page.getByRole("link", { name: "example-eviction" });
    await link.focus();
    await search(open, "round 987654");
    expect(await options(open).allTextContents()).toEqual(["round Round 987654 "]);
    await field(open).fill("no such thing");
    await open.see('Nothing has "no such thing" in its name.');
    expect(await field(open).getAttribute("aria-expanded")).toBe("false");
    await open.page.keyboard.press("Enter");
    await open.page.keyboard.press("Escape");
    await field(open).waitFor({ state: "detached" });
    expect(await isFocused(link)).toBe(true);
    expect(hashOf(open)).toBe("#/plugins");
    open.expectNoProblems();
  });

  it("finds the rest where the agent does not answer for a part, and says what is missing", async () => {
    await using open = await openAt("#/now", { expected: /Failed to load resource/ });
    await open.page.route("**/api/v1/claims*", (route) => route.abort());
    await search(open, "example-eviction");
    await open.see(/Not searched, because not answered: devices\./);
    expect(await options(open).count()).toBeGreaterThan(0);
    open.expectNoProblems();
  });

  it("is opened by a button on a phone, where it fits", async () => {
    await using open = await openAt("#/pod", { width: 360, height: 740 });
    await open.page.getByRole("button", { name: "Search" }).click();
    await field(open).fill("accelerator");
    await options(open).first().waitFor();
    expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] });
    await options(open).filter({ hasText: "accelerator-5" }).click();
    await open.see(/^accelerator-5 pool dev-node/);
    open.expectNoProblems();
  });
});

describe("keys", () => {
  it("are shown by ? and by a button, each that the page has", async () => {
    await using open = await openAt("#/timeline");
    await open.see(/sample-memory/);
    const dialog = open.page.getByRole("dialog", { name: "Keys" });
    await open.page.keyboard.press("?");
    await dialog.getByText("previous, next mark").waitFor();
    expect(await accessibilityProblems(open.page)).toEqual([]);
    // Neither the timeline nor the search takes keys while it is open.
    await open.page.keyboard.press("ArrowLeft");
    await open.page.keyboard.press("/");
    await open.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(hashOf(open)).toBe("#/timeline");
    await open.page.getByRole("button", { name: "Keys" }).click();
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    open.expectNoProblems();
  });

  it("are typed in a field, and are the browser's with Ctrl, Alt or Meta", async () => {
    await using open = await openAt("#/pod");
    const pods = open.page.getByRole("searchbox");
    await pods.pressSequentially("a/?");
    expect(await pods.inputValue()).toBe("a/?");
    await pods.blur();
    for (const modifier of ["Control", "Alt", "Meta"])
      for (const key of ["/", "?"]) await open.page.keyboard.press(`${modifier}+${key}`);
    await open.page.keyboard.press("/");
    // A search that was open before would have been written in.
    expect(await field(open).inputValue()).toBe("");
    expect(await open.page.getByRole("dialog").count()).toBe(1);
    open.expectNoProblems();
  });
});

function isFocused(element: Locator): Promise<boolean> {
  return element.evaluate((one) => one === document.activeElement);
}
