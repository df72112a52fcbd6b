import { setTimeout } from "node:timers/promises";
import type { Browser, Download } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { readCsv } from "./support/csv.ts";
import { accessibilityProblems, overflow } from "./support/in-page.ts";
import { OpenPage } from "./support/open-page.ts";
import { WorldServer } from "./support/world.ts";
import { stopTime, worldViews } from "./support/world-views.ts";

type Row = Record<string, string | number | boolean | null | string[]>;
interface Exported {
  node: string;
  view: string;
  address: string;
  at: string;
  tables: { name: string; rows: Row[] }[];
}

let world: WorldServer;
let browser: Browser;
beforeAll(async () => {
  world = await WorldServer.replay();
  browser = await connectTo(inject("browser"));
});
afterAll(async () => {
  await browser?.close();
  await world?.[Symbol.asyncDispose]();
});

interface Slow {
  width?: number;
  /** Paths whose answers come late. */
  late?: string[];
}

async function openAt(
  hash: string,
  shows: string | RegExp,
  { width = 1_280, late = [] }: Slow = {},
): Promise<OpenPage> {
  const open = await OpenPage.open(browser, world.address, { width });
  await stopTime(open, world);
  for (const path of late)
    await open.page.route(`**/api/v1/${path}?*`, async (route) => {
      await setTimeout(1_000);
      await route.continue();
    });
  await open.goTo(hash);
  await open.page.locator("header .badge.mode").waitFor();
  await open.see(shows);
  return open;
}

/** Clicks what saves a file, and returns its name and content. */
async function saved(open: OpenPage, button: string): Promise<{ name: string; text: string }> {
  const waiting = open.page.waitForEvent("download");
  await dialogOf(open).getByRole("button", { name: button, exact: true }).click();
  const download: Download = await waiting;
  let text = "";
  for await (const piece of await download.createReadStream()) text += piece;
  return { name: download.suggestedFilename(), text };
}

const dialogOf = ({ page }: OpenPage) => page.getByRole("dialog", { name: "Export" });

async function exported(open: OpenPage): Promise<Exported> {
  await open.page.getByRole("button", { name: "Export" }).click();
  return JSON.parse((await saved(open, "JSON")).text);
}

const tableOf = ({ tables }: Exported, name: string): Row[] => {
  const found = tables.find((table) => table.name === name);
  expect(found, `${name} of ${tables.map((table) => table.name).join(", ")}`).toBeDefined();
  return found!.rows;
};

// The table of each view that is named after it, and a column that each of its rows has.
const tables: Record<string, [table: string, column: string]> = {
  timeline: ["Marks", "Time"],
  pods: ["Pods", "Pod"],
  pod: ["What happened", "Step"],
  now: ["Evictions of the last hour", "Pod"],
  rounds: ["The last rounds", "Round"],
  round: ["Candidates by rank", "Rank"],
  plugins: ["Plugins and drivers", "Plugin"],
  plugin: ["Last 24 hours", "Observed"],
  tree: ["What is published", "Name"],
  objects: ["Fields of the object", "Field"],
  topology: ["Topology zones", "Zone"],
  devices: ["Devices of accelerators.example.com", "Device"],
  "what-if": ["Differences", "Difference"],
};

describe.each(worldViews)("the view %s", (view, hash, shows) => {
  it("is exported as JSON, and each of its tables as CSV with the same rows", async () => {
    await using open = await openAt(hash, shows);
    const whole = await exported(open);
    const title = await open.page.locator("h1").textContent();
    expect(whole).toMatchObject({ node: "dev-node", view: title, address: open.page.url() });
    expect(new Date(whole.at).getTime()).toBe(world.at);
    const [table, column] = tables[view]!;
    const rows = tableOf(whole, table);
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row[column]).not.toBeUndefined();
    for (const { name, rows } of whole.tables) {
      // Chromium saves ten files a second at most.
      await setTimeout(100);
      const csv = await saved(open, `CSV of ${name}`);
      expect(csv.name).toMatch(/^dev-node-[\w.-]+-\d{8}T\d{6}Z\.csv$/);
      const [columns = [], ...lines] = readCsv(csv.text);
      expect(lines).toEqual(rows.map((row) => columns.map((each) => fieldOf(row[each]))));
      expect(new Set(columns)).toEqual(new Set(rows.flatMap((row) => Object.keys(row))));
    }
    open.expectNoProblems();
  });
});

function fieldOf(value: Row[string] | undefined): string {
  if (value === null || value === undefined) return "";
  const text = Array.isArray(value) ? value.join("; ") : String(value);
  return typeof value !== "number" && /^\s*[=+\-@]/.test(text) ? `'${text}` : text;
}

describe("an export", () => {
  it("has the pods that the list shows under its filters, in its order, with numbers and times", async () => {
    const late = ["pods", "pods/usage"];
    await using open = await openAt("#/pod?eviction=now&sort=-memory", /^\d+ pods?$/, { late });
    const shownPods = open.page.getByRole("table", { name: "Pods" }).locator("tbody th");
    const names = (await shownPods.allTextContents()).map((text) => text.trim());
    const rows = tableOf(await exported(open), "Pods");
    expect(names.length).toBeGreaterThan(0);
    expect(rows.map(({ Pod }) => Pod)).toEqual(names);
    for (const { Restarts, Started, "Can be evicted": eviction } of rows) {
      expect([typeof Restarts, eviction]).toEqual(["number", "now"]);
      expect(Started).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    }
    const memory = rows.map(({ Memory }) => Memory as number | null);
    expect(memory.filter((bytes) => bytes !== null).every((bytes) => Number.isInteger(bytes))).toBe(true);
    open.expectNoProblems();
  });

  it("has the evictions that Now shows, with how each ended", async () => {
    await using open = await openAt("#/now", "evicted: pod deleted");
    const table = open.page.getByRole("table", { name: /^Evictions of the last hour/ });
    const names = (await table.locator("tbody th").allTextContents()).map((text) => text.trim());
    const rows = tableOf(await exported(open), "Evictions of the last hour");
    expect(rows.map(({ Pod }) => Pod)).toEqual(names);
    expect(rows[0]).toMatchObject({
      Outcome: "evicted: pod deleted",
      "Requested by": "example-eviction (forced)",
    });
    expect(rows[0]!.Selected).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    open.expectNoProblems();
  });

  it("has only the rows of the timeline's range and filter", async () => {
    const { at, namespace, name } = WorldServer.evicted();
    const [from, to] = [at - 90_000, at + 10_000];
    await using open = await openAt(`#/timeline?from=${from}&to=${to}`, /thumbnailer|crawler|search/);
    await open.page.getByRole("searchbox", { name: "Pods" }).fill(name);
    await open.see(/^1 of \d+$/);
    const whole = await exported(open);
    const times = tableOf(whole, "Marks").map(({ Time }) => new Date(Time as string).getTime());
    expect(times.every((time) => time >= from && time <= to)).toBe(true);
    expect(new Set(tableOf(whole, "Containers").map(({ Pod }) => Pod))).toEqual(
      new Set([`${namespace}/${name}`]),
    );
    open.expectNoProblems();
  });

  it("has the differences of the policy that What if shows", async () => {
    await using open = await openAt("#/what-if?dryRunPlugins=*", "rounds differ");
    const whole = await exported(open);
    expect(tableOf(whole, "Changed settings")).toEqual([
      { Setting: expect.stringContaining("dryRun"), Difference: expect.any(String) },
    ]);
    const differences = tableOf(whole, "Differences");
    const { namespace, name, round } = WorldServer.evicted();
    expect(differences).toContainEqual(
      expect.objectContaining({
        Round: round,
        Pod: `${namespace}/${name}`,
        Difference: "was evicted, would not be",
      }),
    );
    open.expectNoProblems();
  });

  it("is saved on a phone and by keyboard, without accessibility problems", async () => {
    await using open = await openAt("#/now", "evicted: pod deleted", { width: 360 });
    await open.page.getByRole("button", { name: "Export" }).focus();
    await open.page.keyboard.press("Enter");
    await dialogOf(open).getByText("All of it").waitFor();
    expect(await accessibilityProblems(open.page)).toEqual([]);
    expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] });
    const { name } = await saved(open, "JSON");
    await open.see(`Saved as ${name}.`);
    await open.page.keyboard.press("Escape");
    await dialogOf(open).waitFor({ state: "detached" });
    open.expectNoProblems();
  });
});
