import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { hardPressure } from "../support/eviction-plugin.ts";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems, keyboardProblems, overflow } from "./support/in-page.ts";
import { startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

it("a plugin has what it observed in 24 hours, also before a restart of the agent, and the time without readings", async () => {
  await using node = await startNode();
  const signals = () => node.agent.api("eviction/signals?plugin=memory-watch");
  await until("a reading", async () => (await signals()).signals[0]);
  await node.agent.stop();
  node.pressure.threshold = { ...hardPressure, metType: 0, observedValue: 0.6 };
  await node.startAgent();
  await until("both agents' readings", async () => {
    const { signals: found } = await signals();
    return [0.4, 0.6].every((value) => found[0]?.observed.includes(value));
  });

  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/plugins/memory-watch");
  await open.see("Last 24 hours", /last 0\.6, from 0\.4 to 0\.6; threshold 0\.8 not met; not recorded for/);
  const slider = open.page.getByRole("slider", { name: "memory over 24 hours" });
  await slider.focus();
  await open.page.keyboard.press("Home");
  await eventually(async () =>
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/: not recorded$/),
  );
  await open.page.keyboard.press("End");
  await eventually(async () =>
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/: 0\.6, threshold 0\.8$/),
  );
  await slider.hover({ position: { x: 2, y: 20 } });
  await open.see(/: not recorded$/);
  expect(await accessibilityProblems(open.page)).toEqual([]);
  expect(await keyboardProblems(open.page)).toEqual([]);
  for (const width of [360, 1920]) {
    await open.page.setViewportSize({ width, height: 800 });
    await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
  }
  await open.goTo("#/now");
  await open.page.getByRole("slider", { name: "memory of memory-watch over 24 hours" }).waitFor();
  expect(await accessibilityProblems(open.page)).toEqual([]);
  open.expectNoProblems();
});
