import { verdictOf } from "@nodekeeper/api/wording";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems } from "./support/in-page.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

// As long as a name may be.
const LONG = `${"checkout-".repeat(25)}7d9c8b6f5c-x2x4z`;

let browser: Browser;
let node: PageNode;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
  node = await startNode();
  node.addPod("victim");
  node.addPod("bystander");
  node.addPod(LONG, "shop");
  await node.evict("victim");
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
});

async function openAt(hash: string): Promise<OpenPage> {
  const open = await OpenPage.open(browser, node.agent.address);
  await open.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await open.goTo(hash);
  await open.see("worker-1");
  return open;
}

const clipboard = ({ page }: OpenPage) => page.evaluate(() => navigator.clipboard.readText());

it("why a pod was evicted is copied as Markdown, in the words of explain, and as a link that opens it", async () => {
  await using open = await openAt("#/pod/default/victim");
  await open.see("Evicted by Nodekeeper");
  const { page } = open;
  await page.getByRole("button", { name: "Copy link" }).click();
  await open.see("Link copied.");
  const link = await clipboard(open);
  const explanation = await node.agent.api("eviction/explain?pod=default/victim");
  expect(link).toBe(`http://${node.agent.address}/#/pod/default/victim?uid=${explanation.uid}`);
  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await open.see("Explanation copied.");
  const markdown = await clipboard(open);
  expect(markdown).toMatch(/^### Pod default\/victim: Evicted by Nodekeeper\n/);
  expect(markdown.replaceAll(/\\([^\w\s])/g, "$1")).toContain(verdictOf(explanation).text);
  expect(markdown).toContain("Node worker-1, UID");
  expect(markdown).toContain(`(<${link}>)`);
  await page.goto("about:blank");
  await page.goto(link);
  await open.see("Evicted by Nodekeeper");
  open.expectNoProblems();
});

it("a round is copied as Markdown", async () => {
  const [{ round }] = (await node.agent.api("eviction/evictions")).items;
  await using open = await openAt(`#/round/${round}`);
  await open.page.getByRole("button", { name: "Copy as Markdown" }).click();
  await open.see("Explanation copied.");
  const markdown = await clipboard(open);
  expect(markdown).toMatch(new RegExp(`^### Round ${round} at .*\\n\\n1 pod selected for eviction\\.\\n`));
  expect(markdown).toContain("| default/victim | selected | memory-watch |");
  open.expectNoProblems();
});

it("the text is shown where the browser does not let the page copy it", async () => {
  await using open = await openAt("#/pod/default/victim");
  await open.page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await open.page.getByRole("button", { name: "Copy link" }).click();
  const text = open.page.getByRole("textbox", { name: /does not let the page copy/ });
  expect(await text.inputValue()).toMatch(/#\/pod\/default\/victim\?uid=/);
  expect(await accessibilityProblems(open.page)).toEqual([]);
  open.expectNoProblems();
});

it("a long name is cut in the middle, but copied, read aloud and shown with the focus as a whole", async () => {
  await using open = await openAt("#/pod");
  const { page } = open;
  const link = page.getByRole("link", { name: `shop/${LONG}`, exact: true });
  await link.waitFor();
  const name = link.locator(".long");
  const widthOf = async () => (await link.boundingBox())!;
  const cut = await widthOf();
  expect(await name.getAttribute("title")).toBe(`shop/${LONG}`);
  await link.evaluate((element) => {
    getSelection()!.selectAllChildren(element);
  });
  await page.keyboard.press("ControlOrMeta+c");
  expect(await clipboard(open)).toBe(`shop/${LONG}`);
  await page.getByRole("searchbox").focus();
  await page.keyboard.press("Tab");
  await link.focus();
  const whole = await widthOf();
  expect(whole.height).toBeGreaterThan(cut.height);
  open.expectNoProblems();
});
