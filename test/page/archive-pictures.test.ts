import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { readMarkdown } from "../../scripts/docs/markdown.ts";
import { ArchiveCommands } from "./support/archive-commands.ts";
import { connectTo } from "./support/chromium.ts";
import { drawnFleet } from "./support/drawn-fleet.ts";
import type { TestFleet } from "./support/fleet.ts";
import { OpenPage } from "./support/open-page.ts";
import { pictureDifference } from "./support/pictures.ts";
import { recordedArchive, shownTrace } from "./support/recorded-archive.ts";
import { FONTS } from "./support/world.ts";
import { stopTime } from "./support/world-views.ts";

// docs/archive-pictures.md: its pictures and what its commands print are made of records that agents exported.
// `UPDATE_SCREENSHOTS=1` draws them again.
const docs = join(import.meta.dirname, "../../docs");
const page = join(docs, "archive-pictures.md");
const MOST_BYTES = 150_000;
const MOST_DIFFERENCE = 0.01;
const isUpdate = process.env.UPDATE_SCREENSHOTS !== undefined;
const archive = recordedArchive();
// The nodes are gone for two hours.
const at = archive.at + 7_200_000;
const [{ attributes: evicted }] = shownTrace(archive);
const pod = `${evicted["k8s.namespace.name"]}/${evicted["k8s.pod.name"]}`;

let commands: ArchiveCommands;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: at });
  commands = await ArchiveCommands.start();
});
afterAll(async () => {
  await commands?.[Symbol.asyncDispose]();
  vi.useRealTimers();
});

describe("the commands of the page", () => {
  const { blocks } = readMarkdown(readFileSync(page, "utf8"));
  const shown = blocks.filter(({ language }) => language === "console").map(({ text }) => text);

  it.each(shown)("%s", async (block) => {
    const [, line = ""] = /^\$ kubectl nodekeeper (.*)$/m.exec(block) ?? [];
    const now = `$ kubectl nodekeeper ${line}\n${(await commands.run(line)).trimEnd()}`;
    if (isUpdate)
      writeFileSync(
        page,
        readFileSync(page, "utf8").replace(block, () => now),
      );
    else expect(now).toBe(block);
  });
});

const views: [name: string, hash: string, ...shows: (string | RegExp)[]][] = [
  ["nodes", "#/nodes", "3 without an answer", /CrashLoopBackOff/],
  ["pods", "#/pods?text=crawler", "3 pods among 403."],
  ["explain", `#/explain?pod=${pod}`, /Answered by the archive/],
  ["compare", "#/compare?a=worker-003&b=worker-012", /differences\.$/],
  ["gone", "#/nodes?only=gone", /last record/],
  ["gone-node", "#/explain?node=worker-112", /Answered by the archive/],
];

describe("the pictures of the page", () => {
  let browser: Browser;
  let fleet: TestFleet;
  let open: OpenPage;
  beforeAll(async () => {
    browser = await connectTo(inject("browser"));
    fleet = drawnFleet(archive, commands);
    const { host, hash } = new URL(await fleet.address());
    open = await OpenPage.open(browser, host, { height: 760 });
    await stopTime(open, { at });
    await open.page.route("**/*.css", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()) + FONTS });
    });
    await open.goTo(hash);
    await open.see("198 nodes, and 2 that are gone");
    await open.page.getByRole("progressbar", { name: "Agents read" }).waitFor({ state: "hidden" });
  });
  afterAll(async () => {
    await open?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
    await browser?.close();
  });

  it.each(views)("%s", async (name, hash, ...shows) => {
    await open.page.goto(`${open.page.url().split("#")[0]}${hash}`);
    await open.see(...shows);
    for (const colorScheme of ["light", "dark"] as const) {
      await open.page.emulateMedia({ colorScheme });
      await compare(open.page, `fleet-${name}-${colorScheme}.png`);
    }
    open.expectNoProblems();
  });
});

async function compare(shown: Page, file: string): Promise<void> {
  const path = join(docs, "images", file);
  if (isUpdate) {
    mkdirSync(join(docs, "images"), { recursive: true });
    writeFileSync(path, await settledPicture(shown));
  }
  const before = readFileSync(path);
  expect(before.length, file).toBeLessThan(MOST_BYTES);
  await expect
    .poll(async () => pictureDifference(shown, before, await take(shown)), { timeout: 15_000, message: file })
    .toBeLessThan(MOST_DIFFERENCE);
}

/** Takes a picture without the empty space below the view. */
async function take(shown: Page): Promise<Buffer> {
  const { width, height } = shown.viewportSize()!;
  const box = (await shown.locator("main").boundingBox())!;
  const clip = { x: 0, y: 0, width, height: Math.min(height, Math.ceil(box.y + box.height)) };
  return await shown.screenshot({ animations: "disabled", clip });
}

async function settledPicture(shown: Page): Promise<Buffer> {
  let last = await take(shown);
  return await until("the picture is the same twice", async () => {
    const next = await take(shown);
    const isSame = next.equals(last);
    last = next;
    return isSame && next;
  });
}
