import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { OpenPage } from "./support/open-page.ts";
import { pictureDifference } from "./support/pictures.ts";
import { WorldServer } from "./support/world.ts";
import { stopTime, worldOverlays, worldViews } from "./support/world-views.ts";

/**
 * What each view looks like, at half its size, against pictures in fixtures/pictures. They are drawn from recorded answers of an
 * agent. `UPDATE_PICTURES=1` draws them again.
 */
const pictures = join(import.meta.dirname, "fixtures/pictures");
const failed = join(tmpdir(), "nodekeeper-pictures");
const SCALE = 0.5;
// Text of another version of the browser differs less; a moved card, or a state without its color, more.
const MOST_DIFFERENCE = 0.01;

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

const sizes = [
  [360, 740],
  [1440, 900],
  [2560, 1300],
] as const;

const pictured: [...(typeof worldViews)[number], typed?: string][] = [...worldViews, ...worldOverlays];

describe.each(pictured)("the view %s", (view, hash, shows, typed) => {
  it.each(sizes)("looks as before, %d pixels wide, light and dark", async (width, height) => {
    await using open = await OpenPage.open(browser, world.address, { width, height, scale: SCALE });
    await stopTime(open, world);
    await open.goTo(hash);
    // The node's name, which arrives by itself, moves what is below it.
    await open.page.locator("header .badge.mode").waitFor();
    await open.see(shows);
    if (typed) await typeAbove(open, typed);
    for (const colorScheme of ["light", "dark"] as const) {
      await open.page.emulateMedia({ colorScheme });
      await compare(open, `${view}-${width}-${colorScheme}.png`);
    }
    open.expectNoProblems();
  });
});

/** Compares what a page shows with a picture, or draws the picture. */
async function compare(open: OpenPage, file: string): Promise<void> {
  if (process.env.UPDATE_PICTURES) {
    mkdirSync(pictures, { recursive: true });
    writeFileSync(join(pictures, file), await settledPicture(open));
    return;
  }
  const before = readFileSync(join(pictures, file));
  let now: Buffer = before;
  // A view may still read answers.
  await expect
    .poll(
      async () => {
        now = await open.page.screenshot({ animations: "disabled" });
        return await pictureDifference(open.page, before, now);
      },
      { timeout: 15_000, message: `a picture that differs is ${join(failed, file)}` },
    )
    .toBeLessThan(MOST_DIFFERENCE)
    .catch((error: Error) => {
      mkdirSync(failed, { recursive: true });
      writeFileSync(join(failed, file), now);
      throw error;
    });
}

it("a state without its color, or a card at another place, is a difference", async () => {
  await using open = await OpenPage.open(browser, world.address, { width: 1440, height: 900, scale: SCALE });
  await stopTime(open, world);
  await open.goTo("#/now");
  await open.see("evicted: pod deleted");
  const before = await settledPicture(open);
  await open.page.evaluate(() => document.querySelector(".columns")!.classList.remove("columns"));
  const after = await open.page.screenshot({ animations: "disabled" });
  expect(await pictureDifference(open.page, before, before)).toBe(0);
  expect(await pictureDifference(open.page, before, after)).toBeGreaterThan(MOST_DIFFERENCE);
});

/** Types what opens something above the view, and on in it. */
async function typeAbove({ page }: OpenPage, typed: string): Promise<void> {
  await page.keyboard.press(typed.charAt(0));
  await page.getByRole("dialog").waitFor();
  if (typed.length === 1) return;
  await page.getByRole("combobox").fill(typed.slice(1));
  await page.getByText(/found\.$/).waitFor();
}

/** Takes pictures until two are the same: the view has read all answers. */
async function settledPicture({ page }: OpenPage): Promise<Buffer> {
  const take = () => page.screenshot({ animations: "disabled" });
  let last = await take();
  return await until("the picture is the same twice", async () => {
    const next = await take();
    const isSame = next.equals(last);
    last = next;
    return isSame && next;
  });
}
