// The agent's page in Chromium, for bench/page.ts: node bench/page-browser.ts ORIGIN TIMES
// Opens it in TIMES fresh profiles, then once more to stay. Prints a line of JSON with when each painted first; counts frames
// and long tasks from there until a line comes on stdin, prints them as another line, and ends.
import { once } from "node:events";
import { systemClock } from "@nodekeeper/core/lib";
import type { Browser, Page } from "playwright-core";
import { connectTo, launchChromium } from "../test/page/support/chromium.ts";
import type { DrawnFrames, FirstPaints } from "./page.ts";

// Until what a view loads and draws at first is done.
const SETTLED_MS = 5_000;

const [origin = "", times = "5"] = process.argv.slice(2);
const server = await launchChromium();
const browser = await connectTo(server.wsEndpoint());
const paintsMs: number[] = [];
for (let time = 0; time < Number(times); time++) paintsMs.push(await firstPaint(browser));
const page = await opened(browser);
await systemClock.sleep(SETTLED_MS);
print({ paintsMs } satisfies FirstPaints);
await page.evaluate(countFrames);
await once(process.stdin, "data");
print((await page.evaluate(() => globalThis.drawn())) satisfies DrawnFrames);
await server.close();
process.exit(0);

async function opened(from: Browser): Promise<Page> {
  const context = await from.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${origin}/#/timeline`);
  await page.getByText("bench").first().waitFor();
  return page;
}

/** From the start of the navigation, milliseconds, by the browser's own clock. */
async function firstPaint(from: Browser): Promise<number> {
  const page = await opened(from);
  const paint = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
  );
  await page.context().close();
  return paint;
}

declare global {
  var drawn: () => DrawnFrames;
}

function countFrames(): void {
  const startedAt = performance.now();
  const framesAt: number[] = [];
  const longTasksMs: number[] = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longTasksMs.push(duration);
  }).observe({ type: "longtask" });
  const onFrame = (at: number) => {
    framesAt.push(at);
    requestAnimationFrame(onFrame);
  };
  requestAnimationFrame(onFrame);
  globalThis.drawn = () => ({ seconds: (performance.now() - startedAt) / 1_000, framesAt, longTasksMs });
}

function print(value: FirstPaints | DrawnFrames): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
