import { eventually } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

// What a browser logs while no agent answers.
const LOST = /net::ERR_/;

let browser: Browser;
let node: PageNode;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
  node = await startNode();
  for (const name of ["victim", "witness"]) node.addPod(name);
  await node.evict("victim");
});
afterAll(async () => {
  await browser?.close();
  await node?.[Symbol.asyncDispose]();
});

/** Rounds replayed, victims recorded, victims with this policy, and rounds that differ. */
async function figuresOf({ page }: OpenPage): Promise<number[]> {
  await page.locator('.result[aria-busy="false"] .figures').waitFor();
  return (await page.locator(".figures dd").allTextContents()).map(Number);
}

async function expectVictims(open: OpenPage, recorded: number, replayed: number): Promise<void> {
  await eventually(async () => expect((await figuresOf(open)).slice(1, 3)).toEqual([recorded, replayed]));
}

it("an address replays recorded rounds with its policy: what differs, with the pods, and how to make it so", async () => {
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/what-if?dryRunPlugins=*");
  await expectVictims(open, 1, 0);
  await open.see("default/victim", /the plugin is in dry run/, /dryRunPlugins \["\*"\] instead of \[\]/);
  await open.see(/eviction:\s+dryRunPlugins:\s+- "\*"/);
  await open.page.getByRole("link", { name: "default/victim" }).first().click();
  await open.see(/memory-watch/);
  await open.page.goBack();
  await expectVictims(open, 1, 0);
  open.expectNoProblems();
});

it("a field is replayed as it is typed; one that the agent would refuse has the reason beside it", async () => {
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/what-if");
  await expectVictims(open, 1, 1);
  await open.page.getByRole("textbox", { name: "Evictions started per round" }).fill("0");
  await expectVictims(open, 1, 0);
  const cooldown = open.page.getByRole("textbox", { name: "Cooldown after an evicted pod is deleted" });
  await cooldown.fill("5 minutes");
  await open.see(/Not valid: got "5 minutes", expected a duration from 0s to 24h/);
  expect(await cooldown.getAttribute("aria-invalid")).toBe("true");
  expect(new URL(open.page.url()).hash).toMatch(/burst=0&.*cooldown=5(%20|\+)minutes/);
  await open.page.getByRole("button", { name: "Reset all" }).click();
  await expectVictims(open, 1, 1);
  await open.see("No round differs.");
  open.expectNoProblems();
});

it("continues when the agent answers again, and has what to do where eviction is off", async () => {
  await using open = await OpenPage.open(browser, node.agent.address, { expected: LOST });
  await open.goTo("#/what-if?burst=0");
  await expectVictims(open, 1, 0);
  await node.agent.stop();
  await open.see(/Reconnecting\./);
  await open.page.getByLabel("Rounds of").selectOption("last 24 hours");
  await open.see("The agent does not answer.");
  await node.startAgent();
  await expectVictims(open, 1, 0);
  await node.agent.stop();
  await open.see(/Reconnecting\./);
  await node.startAgent({ eviction: "false" });
  await open.see(/Eviction is off: no rounds are decided/, "eviction.enabled: true");
  open.expectNoProblems();
});
