import { globSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, inject, it } from "vitest";
import { serveDirectory } from "../../scripts/docs/serve.ts";
import { buildSite } from "../../scripts/docs/site.ts";
import { connectTo } from "./support/chromium.ts";

const root = join(import.meta.dirname, "../..");
/** Three screens of a laptop, in pixels; fonts differ between machines. */
const LONGEST_GUIDE = 3 * 1_000;
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let browser: Browser;
let out: string;
let page: Page;

beforeAll(async () => {
  browser = await connectTo(inject("browser"));
  out = mkdtempSync(join(tmpdir(), "nk-docs-"));
  await buildSite(root, out);
});
afterAll(async () => {
  await browser?.close();
  rmSync(out, { recursive: true, force: true });
});
beforeEach(async () => {
  page = await browser.newPage({ viewport: { width: 1440, height: 900 }, bypassCSP: false });
  return () => page.close();
});

const results = () => page.locator("#results a");
const focused = () => page.evaluate("document.activeElement.textContent");

it("is searched from any page by the keyboard alone, also if it was opened from files", async () => {
  await page.goto(pathToFileURL(join(out, "contributing/releasing.html")).href);
  await page.keyboard.press("/");
  await page.keyboard.type("nk1319");
  await page.getByText(/^\d+ found/).waitFor();
  expect(await results().first().textContent()).toMatch(/NK1319/);
  await page.keyboard.press("ArrowDown");
  expect(await focused()).toMatch(/NK1319/);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/errors\.html#nk1319$/);
});

it("finds the sections that have all words, a heading before a text, and says how many", async () => {
  await page.goto(pathToFileURL(join(out, "index.html")).href);
  await page.getByLabel("Search the documentation").fill("uninstalling");
  await page.getByText(/^\d+ found/).waitFor();
  expect(await results().first().textContent()).toMatch(/Uninstall/i);
  await page.getByLabel("Search the documentation").fill("uninstalling zebra");
  await page.getByText("0 found").waitFor();
  expect(await results().count()).toBe(0);
  await page.keyboard.press("Escape");
  expect(await page.getByLabel("Search the documentation").inputValue()).toBe("");
});

it("loads the index only when somebody searches, and nothing that its policy forbids", async () => {
  using server = await serveDirectory(out, 0);
  const loaded: string[] = [];
  const problems: string[] = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(`${server.url}install.html`);
  expect(loaded).not.toContain("/search-index.js");
  await page.getByLabel("Search the documentation").fill("chart");
  await page.getByText(/^\d+ found/).waitFor();
  expect(loaded.filter((path) => path === "/search-index.js")).toHaveLength(1);
  expect(problems).toEqual([]);
});

it("says that its index can't be loaded, and loads it once it can", async () => {
  using server = await serveDirectory(out, 0);
  await page.route("**/search-index.js", (route) => route.abort());
  await page.goto(`${server.url}install.html`);
  const field = page.getByLabel("Search the documentation");
  await field.fill("chart");
  await page.getByText("The search index can't be loaded.").waitFor();
  await page.unroute("**/search-index.js");
  await field.fill("charts");
  await page.getByText(/^\d+ found/).waitFor();
});

it("fits a phone: search, then the page, then the list of pages; what is wider scrolls within itself", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  for (const address of globSync("**/*.html", { cwd: out })) {
    await page.goto(pathToFileURL(join(out, address)).href);
    const wide = await page.evaluate(`
      const right = ({ right }) => Math.round(right);
      [...document.querySelectorAll("body *:not(.skip)")]
        .filter((element) => !element.parentElement.closest("pre, .table, .diagram"))
        .filter((element) => right(element.getBoundingClientRect()) > 360)
        .map((element) => element.outerHTML.slice(0, 100))
    `);
    expect(wide, address).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth"), address).toBe(360);
  }
  await page.goto(pathToFileURL(join(out, "install.html")).href);
  const top = async (selector: string) => (await page.locator(selector).boundingBox())!.y;
  expect(await top("#search")).toBeLessThan(await top("h1"));
  expect(await top("main")).toBeLessThan(await top("nav[aria-label=Pages]"));
});

it("has guides of at most three screens", async () => {
  const heights: Record<string, number> = {};
  for (const address of globSync("guides/*.html", { cwd: out })) {
    await page.goto(pathToFileURL(join(out, address)).href);
    heights[address] = await page.evaluate<number>("document.querySelector('main').scrollHeight");
  }
  expect(Object.entries(heights).filter(([, height]) => height > LONGEST_GUIDE)).toEqual([]);
  expect(Object.keys(heights).length).toBeGreaterThan(10);
});

it.each(["light", "dark"] as const)("is accessible with results and contents, in %s", async (colorScheme) => {
  await page.emulateMedia({ colorScheme });
  await page.goto(pathToFileURL(join(out, "eviction.html")).href);
  await page.getByLabel("Search the documentation").fill("taint");
  await page.getByText(/^\d+ found/).waitFor();
  expect(
    await page.getByRole("navigation", { name: "On this page" }).getByRole("link").count(),
  ).toBeGreaterThan(3);
  // By the protocol of the browser, because the page's policy forbids scripts from elsewhere.
  await page.addInitScript({ path: axe });
  await page.reload();
  await page.getByLabel("Search the documentation").fill("taint");
  await page.getByText(/^\d+ found/).waitFor();
  const violations = await page.evaluate(
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))",
  );
  expect(violations).toEqual([]);
});
