// A grid of devices in Chromium, for bench/device-grid.ts: node bench/device-grid-browser.ts ORIGIN DRIVER DEVICES TIMES SECONDS
// Opens it in TIMES fresh profiles; in the last one stays SECONDS seconds, then presses keys. Prints what it saw as JSON.
import { systemClock } from "@nodekeeper/core/lib";
import type { Browser, CDPSession, Page } from "playwright-core";
import { connectTo, launchChromium } from "../test/page/support/chromium.ts";
import type { DrawnGrid } from "./device-grid.ts";

const PRESSES = 100;

const [origin = "", driver = "", devices = "0", times = "1", seconds = "1"] = process.argv.slice(2);
const server = await launchChromium();
const browser = await connectTo(server.wsEndpoint());
const drawnMs: number[] = [];
const openingMs: number[] = [];
let page: Page | undefined;
for (let time = 0; time < Number(times); time++) {
  await page?.context().close();
  page = await opened(browser);
  const { drawnAt, longTasks } = await page.evaluate(() => globalThis.watched);
  drawnMs.push(drawnAt);
  openingMs.push(Math.max(0, ...longTasks));
}
const last = page!;
const session = await last.context().newCDPSession(last);
// Of the thread's own clock, which stands still while others have the core.
await session.send("Performance.enable", { timeDomain: "threadTicks" });
await forgetTasks(last);
const before = await cpuMs(session);
await systemClock.sleep(Number(seconds) * 1_000);
const changingCpuMs = (await cpuMs(session)) - before;
const changingMs = await last.evaluate(() => globalThis.watched.longTasks);
await forgetTasks(last);
await last.locator("ul.devices button").first().focus();
const beforeKeys = await cpuMs(session);
for (let press = 0; press < PRESSES; press++)
  await last.keyboard.press(["ArrowRight", "ArrowDown", "End", "Home"][press % 4]!);
const keyCpuMs = ((await cpuMs(session)) - beforeKeys) / PRESSES;
// The browser reports how long an event took after the frame that shows what it did.
await systemClock.sleep(1_000);
const { keys, longTasks: pressingMs } = await last.evaluate(() => globalThis.watched);
const changing = { changingMs, changingCpuMs: changingCpuMs / Number(seconds) };
const drawn: DrawnGrid = { drawnMs, openingMs, ...changing, keysMs: keys, pressingMs, keyCpuMs };
process.stdout.write(`${JSON.stringify(drawn)}\n`);
await server.close();
process.exit(0);

async function opened(from: Browser): Promise<Page> {
  const context = await from.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(watch, Number(devices));
  await page.goto(`${origin}/#/resources/devices?driver=${driver}`);
  await page.waitForFunction(() => globalThis.watched.drawnAt > 0);
  return page;
}

/** CPU time that the page's main thread has used for tasks. */
async function cpuMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration")!.value * 1_000;
}

async function forgetTasks(page: Page): Promise<void> {
  await page.evaluate(() => {
    globalThis.watched.longTasks = [];
  });
}

declare global {
  var watched: {
    /** When the frame with all cells was drawn, from the start of the navigation. 0: not yet. */
    drawnAt: number;
    longTasks: number[];
    /** From each key to the frame that shows what it did. */
    keys: number[];
  };
}

function watch(count: number): void {
  const seen: typeof globalThis.watched = { drawnAt: 0, longTasks: [], keys: [] };
  globalThis.watched = seen;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longTasks.push(duration);
  }).observe({ type: "longtask", buffered: true });
  // Shorter ones than a frame are not reported.
  const ofKeys = { type: "event", durationThreshold: 16 };
  new PerformanceObserver((list) => {
    for (const { name, duration } of list.getEntries()) if (name === "keydown") seen.keys.push(duration);
  }).observe(ofKeys);
  const look = () => {
    if (document.querySelectorAll("ul.devices button").length < count) requestAnimationFrame(look);
    else requestAnimationFrame(() => setTimeout(() => (seen.drawnAt = performance.now())));
  };
  requestAnimationFrame(look);
}
