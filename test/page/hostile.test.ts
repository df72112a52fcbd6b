import { join } from "node:path";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { servePlugin } from "../../packages/agent/src/plugins/testing/setup.ts";
import { podNamed } from "../support/eviction-plugin.ts";
import { rawField, startGoodPlugin } from "../support/plugins.ts";
import { connectTo } from "./support/chromium.ts";
import { overflow } from "./support/in-page.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

// Markup that runs where it is taken for such, a text that turns around, forged lines, characters that can't be seen.
const HOSTILE = `<img src=x onerror=alert(1)>"'\u202egnp.exe\u2066\u200b\u0007\u2028\nforged`;
const LONG = "l".repeat(253);
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be shown as it is
const DANGEROUS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]/;

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

describe("names and texts of others", () => {
  let node: PageNode;
  const ends: (() => unknown)[] = [];

  beforeAll(async () => {
    node = await startNode();
    const { pluginDir } = node.agent;
    const refused = await servePlugin(join(pluginDir, "odd.sock"), { type: HOSTILE });
    ends.push(() => refused.close());
    const reporter = await startGoodPlugin(pluginDir, "hostile", rawField("nonsense", `{"${HOSTILE}`));
    ends.push(() => reporter.stop());
    // The runtime's pods are of any name; those of the API server are as long as a name may be.
    const sandbox = node.runtime.runSandbox({ uid: "uid-hostile", name: HOSTILE, namespace: HOSTILE });
    node.runtime.exit(node.runtime.runContainer(sandbox, { name: HOSTILE, image: HOSTILE }), 1, HOSTILE);
    const { uid } = node.addPod(LONG);
    node.pressure.threshold = { ...node.pressure.threshold, evictionScope: HOSTILE };
    node.pressure.evictPods = () => ({
      evictPods: [{ pod: podNamed(LONG, uid), reason: HOSTILE, forceEvict: true }],
    });
    await until("it is evicted", () => node.cluster.evictions().includes(LONG), {
      explain: () => node.agent.logLines.slice(-5),
    });
    await until("the other is refused", async () =>
      (await node.agent.plugins()).some(({ state }) => state === "refused"),
    );
  });
  afterAll(async () => {
    for (const end of ends) await end();
    await node?.[Symbol.asyncDispose]();
  });

  it.each([
    ["the timeline", "#/timeline", /l{40}/],
    ["a pod with a long name", `#/pod/default/${LONG}`, /gnp\.exe/],
    [
      "a pod of the runtime",
      `#/pod/${encodeURIComponent(HOSTILE)}/${encodeURIComponent(HOSTILE)}`,
      /gnp\.exe/,
    ],
    // Cut in the middle to the eye, but not to screen readers.
    ["pods", "#/pod", /l{60}/],
    ["rounds", "#/round", /l{60}/],
    ["a round", "#/round/1", /gnp\.exe/],
    ["a round that there is not", `#/round/${encodeURIComponent(HOSTILE)}`, /No record of round/],
    ["now", "#/now", /worker-1/],
    ["plugins", "#/plugins", /gnp\.exe/],
    ["resources", "#/resources", /worker-1/],
    ["what if", "#/what-if", /rounds replayed/],
    ["the address itself", `#/${encodeURIComponent(HOSTILE)}`, /gnp\.exe/],
    ["an address that is no URL", "#/%E0%A4%A/%00", /no view/],
  ])("are shown escaped and do nothing: %s", async (_, hash, shown) => {
    // There is no record of the runtime's pod, which the browser logs.
    await using open = await OpenPage.open(browser, node.agent.address, { expected: /404 \(Not Found\)/ });
    await open.goTo(hash);
    await eventually(async () => expect(await open.text()).toMatch(shown));
    for (const width of [1280, 360]) {
      await open.page.setViewportSize({ width, height: 800 });
      await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
    }
    expect(await open.text()).not.toMatch(DANGEROUS);
    expect(await open.page.title()).not.toMatch(DANGEROUS);
    // Attributes are read aloud or shown as tooltips.
    const attributes = await open.page.evaluate(() =>
      [...document.querySelectorAll("body *")].flatMap((element) =>
        ["title", "aria-label", "alt", "placeholder"].map((name) => element.getAttribute(name) ?? ""),
      ),
    );
    expect(attributes.filter((text) => DANGEROUS.test(text))).toEqual([]);
    expect(await open.page.locator('main img[src="x"], main [onerror]').count()).toBe(0);
    open.expectNoProblems();
  });
});

describe("500 pods", () => {
  let node: PageNode;
  const names = Array.from({ length: 500 }, (_, at) => `web-${String(at).padStart(3, "0")}`);

  beforeAll(async () => {
    node = await startNode();
    for (const name of names) node.addPod(name, `team-${names.indexOf(name) % 7}`);
    await until(
      "the agent knows them all",
      async () => (await node.agent.api("node")).lifecycle.pods === 500,
    );
    await node.evict(names[250]!);
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  it.each([
    "#/timeline",
    "#/pod",
    "#/now",
    "#/plugins",
    "#/resources",
    "#/what-if",
    "#/round/1",
    `#/pod/team-5/${names[250]}`,
  ])("%s shows them and does not scroll sideways", async (hash) => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo(hash);
    await open.see("worker-1");
    // The lists of pods are cut, and are searched.
    const search = open.page.getByRole("searchbox");
    if (hash === "#/timeline" || hash === "#/pod") await search.fill("web-25");
    if (/timeline|pod/.test(hash)) await open.see(new RegExp(names[250]!));
    for (const width of [360, 1920]) {
      await open.page.setViewportSize({ width, height: 900 });
      await eventually(async () => expect(await overflow(open.page)).toEqual({ pixels: 0, of: [] }));
    }
    open.expectNoProblems();
  });
});

describe("times without anything", () => {
  it.each([
    ["of the past", Date.parse("1970-01-02"), Date.parse("1970-01-03")],
    ["of the future", Date.parse("2200-01-01"), Date.parse("2200-01-02")],
    ["that end before they start", Date.parse("2026-01-02"), Date.parse("2026-01-01")],
    ["that are no numbers", Number.NaN, Number.POSITIVE_INFINITY],
  ])("the timeline of times %s is no error", async (_, from, to) => {
    await using node = await startNode();
    node.addPod("web");
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo(`#/timeline?from=${from}&to=${to}&at=${from}`);
    await open.see("worker-1");
    await eventually(async () => expect(await open.text()).not.toMatch(/Invalid Date|NaN/));
    open.expectNoProblems();
  });
});
