import { verdictOf } from "@nodekeeper/api/wording";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems } from "./support/in-page.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

/** The verdict that is shown, with its times as the agent has them. */
async function shownVerdict({ page }: OpenPage): Promise<string> {
  return await page
    .locator(".pod-sentence")
    .evaluate((sentence) =>
      [...sentence.childNodes]
        .map((node) => (node instanceof HTMLTimeElement ? node.dateTime : (node.textContent ?? "")))
        .join(""),
    );
}

describe("a pod that was evicted", () => {
  let node: PageNode;
  beforeAll(async () => {
    node = await startNode();
    node.addPod("victim");
    node.addPod("bystander");
    node.cluster.addPod("precious", { spec: { priority: 100 } });
    await node.evict("victim");
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  it("has the sentence and the steps of nodekeeper explain, with a link to the timeline", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/pod/default/victim");
    // As it goes on: in progress, then evicted.
    await open.see("Evicted by Nodekeeper", "eviction started", /accepted/);
    const explanation = await node.agent.api("eviction/explain?pod=default/victim");
    expect(await shownVerdict(open)).toBe(verdictOf(explanation).text);
    const link = await open.page.getByText("Its place on the timeline").getAttribute("href");
    const [, from, to] = /^#\/timeline\?from=(\d+)&to=(\d+)$/.exec(link ?? "") ?? [];
    const [{ at }] = explanation.rounds.filter(({ victim }: { victim: unknown }) => victim !== null);
    expect([Number(from) < at, at < Number(to)]).toEqual([true, true]);
    open.expectNoProblems();
  });

  it("has the ranking, in which each comparison can be opened", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/pod/default/victim");
    await open.page.getByRole("button", { name: "Compare with precious" }).click();
    await open.see("default/victim ranks before default/precious: priority 0 before 100.");
    const compared = open.page.getByRole("table", { name: /Comparison of default\/victim/ });
    expect(await compared.getByRole("row", { name: /^priority 0 100 decides$/ }).count()).toBe(1);
    expect(await compared.getByRole("row", { name: /^QoS level .* equal$/ }).count()).toBe(1);
    expect(await accessibilityProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("is found by a part of its name, as are pods that exist", async () => {
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/pod");
    await open.see("default/victim", "default/bystander");
    await open.page.getByRole("searchbox").fill("t/vict");
    await open.see("1 pod");
    await open.page.getByRole("searchbox").press("Enter");
    await open.see("Evicted by Nodekeeper");
    await open.page.goBack();
    await eventually(async () => expect(await open.page.getByRole("searchbox").inputValue()).toBe("t/vict"));
    open.expectNoProblems();
  });
});

it("shows why a pod is kept, then its eviction, as it happens", async () => {
  await using node = await startNode();
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/pod/default/web");
  await open.see("Not evicted", /^Not evicted: no plugin requested it/, "running");
  await node.evict("web");
  await open.see("Evicted by Nodekeeper", "pod deleted");
  open.expectNoProblems();
});

it("distinguishes pods of one name", async () => {
  await using node = await startNode();
  const first = node.addPod("web-0");
  await node.evict("web-0");
  await until("the first is deleted", async () => {
    const { history } = await node.agent.api("eviction/explain?pod=default/web-0");
    return history?.leftAt != null;
  });
  const second = node.addPod("web-0");
  await until("the second is known", async () => {
    const { items } = await node.agent.api("eviction/pods?text=web-0");
    return items.length === 2;
  });
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo(`#/pod/default/web-0?uid=${second.uid}`);
  await open.see(/^Not evicted/, "Another pod has or had this name:");
  await open.page.getByRole("link", { name: first.uid }).click();
  await open.see("Evicted by Nodekeeper");
  open.expectNoProblems();
});

it("of a pod that is not known there is the time since which records are kept, and what to do", async () => {
  await using node = await startNode();
  await using open = await OpenPage.open(browser, node.agent.address, { expected: /404/ });
  await open.goTo("#/pod/default/stranger");
  await open.see(/No record of the pod default\/stranger on this node/, "What to do:");
  open.expectNoProblems();
});

it("where eviction is off, has what the container runtime has, and how to turn it on", async () => {
  await using node = await startNode({ flags: { eviction: "false" } });
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/pod/default/web");
  await open.see("Eviction is off.", "eviction.enabled: true", "running");
  await open.goTo("#/now");
  await open.see("Nodekeeper evicts no pod and sets no taint.");
  open.expectNoProblems();
});

it("the list has what each pod uses, and why it is unknown of one", async () => {
  await using node = await startNode();
  node.addPod("web");
  const { uid } = node.addPod("api");
  // At the API server alone: the runtime knows no such pod.
  node.cluster.addPod("pending");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.page.route("**/api/v1/pods/usage?*", async (route) => {
    const response = await route.fetch();
    const usage = await response.json();
    for (const item of usage.items)
      if (item.uid === uid) Object.assign(item, { cpu: 1.5, memoryBytes: 2 ** 30 });
    await route.fulfill({ response, json: usage });
  });
  await open.goTo("#/pod?sort=-cpu");
  const rows = open.page.locator(".table tbody tr");
  await rows.nth(0).filter({ hasText: "default/api" }).filter({ hasText: "1.5" }).waitFor();
  await rows.nth(0).filter({ hasText: "1 GiB" }).waitFor();
  await rows.nth(1).filter({ hasText: "default/web" }).filter({ hasText: /0\.1/ }).waitFor();
  const pending = rows.nth(2).filter({ hasText: "default/pending" });
  await pending
    .getByTitle(/Unknown: neither the kernel nor the container runtime/)
    .first()
    .waitFor();
  await open.page.getByRole("button", { name: "Memory" }).click();
  await rows.nth(1).filter({ hasText: "default/api" }).waitFor();
  expect(new URL(open.page.url()).hash).toBe("#/pod?sort=memory");
  expect(await accessibilityProblems(open.page)).toEqual([]);
  // Usage is requested every five seconds: a response that is being changed when the page closes would fail.
  await open.page.unrouteAll({ behavior: "wait" });
  open.expectNoProblems();
});

it("the list says when a pod can be evicted again, though nothing happens on the node", async () => {
  await using node = await startNode();
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  let until: number | undefined;
  await open.page.route("**/api/v1/eviction/eligibility*", async (route) => {
    const response = await route.fetch();
    const pods = await response.json();
    // The page reads it several times while it opens.
    until ??= Date.now() + 8_000;
    const reason = "limit of evictions per owner reached";
    if (Date.now() < until) for (const pod of pods) Object.assign(pod, { eviction: "later", reason, until });
    await route.fulfill({ response, json: pods });
  });
  await open.goTo("#/pod");
  const web = open.page.locator("tbody tr", { hasText: "default/web" });
  await web.filter({ hasText: "later: limit of evictions per owner reached" }).waitFor();
  await web.filter({ hasText: /now$/ }).waitFor();
  await open.page.unrouteAll({ behavior: "wait" });
  open.expectNoProblems();
});

it("the list has what decides about each pod; sorting and filter are in the address, which can be sent", async () => {
  await using node = await startNode();
  node.addPod("web");
  const owner = { kind: "DaemonSet", name: "agent", uid: "agent", apiVersion: "apps/v1", controller: true };
  node.addPod("agent-1", "default", { ownerReferences: [owner] });
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/pod");
  const names = () => open.page.locator(".table tbody th").allInnerTexts();
  const agent = open.page.locator("tbody tr", { hasText: "default/agent-1" });
  await agent
    .filter({ hasText: "DaemonSet agent" })
    .filter({ hasText: "never: pods of DaemonSets" })
    .waitFor();
  await open.page.getByRole("button", { name: "Pod", exact: true }).click();
  await open.page.getByRole("button", { name: /^Pod/ }).click();
  await expect.poll(names).toEqual(["default/web", "default/agent-1"]);
  await open.page.getByRole("button", { name: "Can be evicted now" }).click();
  await expect.poll(names).toEqual(["default/web"]);
  const { hash } = new URL(open.page.url());
  expect(hash).toBe("#/pod?sort=-name&eviction=now");

  await using other = await OpenPage.open(browser, node.agent.address);
  await other.goTo("#/pod?sort=-name");
  await other.see("default/agent-1", "default/web");
  await expect
    .poll(() => other.page.locator(".table tbody th").allInnerTexts())
    .toEqual(["default/web", "default/agent-1"]);
  expect(await accessibilityProblems(other.page)).toEqual([]);
  open.expectNoProblems();
});
