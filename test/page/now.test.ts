import { setTimeout } from "node:timers/promises";
import { SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { hardPressure, pick } from "../support/eviction-plugin.ts";
import { connectTo } from "./support/chromium.ts";
import { accessibilityProblems } from "./support/in-page.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

interface Budgets {
  node: { freeAt: number };
  namespaces: { freeAt: number }[];
  owners: { freeAt: number }[];
}

const PAUSE_MS = 600_000;
const PERIOD_MS = 300_000;

/** A row of a table of the view, by texts in it. */
function row({ page }: OpenPage, table: string, ...texts: (string | RegExp)[]): Locator {
  const rows = page.getByRole("table", { name: table }).locator("tbody tr");
  return texts.reduce((found, hasText) => found.filter({ hasText }), rows);
}

const inProgress = "Evictions in progress";
const limits = "Limits of evictions";

// Times that evictions wait for follow the node's wall clock from round to round.
const CLOCK_DRIFT_MS = 5_000;

/** Expects that a row counts down to a time, milliseconds since the epoch. */
async function expectUntil(found: Locator, ms: number): Promise<void> {
  const time = found.locator("time").filter({ hasText: /^in \d+ (s|min|h)$/ });
  const shown = Date.parse((await time.getAttribute("datetime"))!);
  expect(Math.abs(shown - ms)).toBeLessThan(CLOCK_DRIFT_MS);
}

/** Has `pressure` force all pods of these names out. */
function force({ pressure }: PageNode, names: readonly string[]): void {
  pressure.evictPods = (offered, pods) => ({
    evictPods: pick(names)(offered, pods).targetPods.map((pod) => ({
      pod,
      reason: "all of them",
      forceEvict: true,
    })),
  });
}

it("has the thresholds that are met, the evictions with their outcome, and the limits that hold further ones up", async () => {
  await using node = await startNode({
    flags: { evictionLimitsPerNode: "1", evictionLimitsWindow: "1h", evictionCooldown: "0s" },
  });
  for (const name of ["first", "second"]) node.addPod(name);
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/now");
  await open.see(
    "Live: pods are evicted",
    /None is recorded for the last hour. No records before .* are kept/,
  );
  await node.evict("first");
  node.pressure.top = pick(["second"]);
  node.pressure.threshold = hardPressure;
  await open.see("memory 0.93 > threshold 0.8", "default/first", /^evicted: /, "1 of 1");
  await open.see(/on hold: limit of evictions on this node reached/, /1 \(node limit\)/);
  expect(await accessibilityProblems(open.page)).toEqual([]);
  open.expectNoProblems();
});

it("counts down by itself, but not while it is disconnected", async () => {
  await using node = await startNode({ flags: { evictionLimitsPerNode: "1", evictionLimitsWindow: "1m" } });
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/now");
  await node.evict("web");
  const free = open.page.locator("tr", { hasText: "this node" }).locator("time");
  await free.waitFor();
  const seconds = async () => Number(/in (\d+) s/.exec((await free.textContent()) ?? "")?.[1]);
  const before = await seconds();
  await expect.poll(seconds, { timeout: 120_000 }).toBeLessThan(before - 1);
  await node.agent.stop();
  await open.see(/port-forward/);
  const last = await free.textContent();
  await setTimeout(3_000);
  expect(await free.textContent()).toBe(last);
});

it("dry run can't be missed: nothing is evicted, and what would have been is there once with its number", async () => {
  await using node = await startNode({ flags: { evictionDryRunPlugins: "*" } });
  node.addPod("web");
  await using open = await OpenPage.open(browser, node.agent.address);
  await open.goTo("#/now");
  node.pressure.top = pick(["web"]);
  node.pressure.threshold = hardPressure;
  await open.see("dry run: only recorded", "dry run: not evicted", /not evicted \d+ times$/);
  expect(await open.page.getByText("Dry run: no pod is evicted").count()).toBe(2);
  expect(await open.page.getByRole("link", { name: "default/web" }).count()).toBe(1);
  expect(node.cluster.evictions()).toEqual([]);
  open.expectNoProblems();
});

describe("what is delayed, and until when", () => {
  it("a pod that a PodDisruptionBudget protects, with the budget; it is tried again, and evicted once the budget allows it", async () => {
    const clock = new SteppedClock();
    await using node = await startNode({ clock, flags: { evictionFailedEvictionPause: "10m" } });
    node.addPod("guarded", "default", { labels: { app: "web" } });
    const budget = (minAvailable: number) =>
      node.cluster.server.store.put({
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "keep-web", namespace: "default" },
        spec: { minAvailable, selector: { matchLabels: { app: "web" } } },
      });
    budget(1);
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/now");
    await open.see(
      "None is in progress, queued, on hold, or to be retried.",
      "1 of 1 pod can be evicted now.",
    );
    node.pressure.top = pick(["guarded"]);
    node.pressure.threshold = hardPressure;
    const held = row(open, inProgress, "default/guarded", "failed, retried later");
    await held.waitFor();
    expect(await held.textContent()).toContain(
      "refused by PodDisruptionBudget default/keep-web: 1 healthy, 1 must stay",
    );
    expect(await held.textContent()).toMatch(/may be tried again in \d+ min/);
    const { paused } = await node.agent.api("eviction/budgets");
    await expectUntil(held, paused[0].until);
    await open.see("0 of 1 pod can be evicted now, 1 later.", "1 (retry pending after a failed attempt)");
    await open.see(/on hold: no candidate can be evicted now, at most \d+ s left/);
    await open.see(/^not evicted: 429: PodDisruptionBudget default\/keep-web allows no disruption now/);
    expect(await accessibilityProblems(open.page)).toEqual([]);

    budget(0);
    clock.advance(PAUSE_MS);
    await row(open, "Evictions of the last hour", "default/guarded", /evicted: /)
      .filter({ hasNotText: "not evicted" })
      .waitFor();
    await open.see("None is in progress, queued, on hold, or to be retried.");
    open.expectNoProblems();
  });

  it("pods beyond limits of the node, a namespace and an owner, with when each allows one more", async () => {
    const owner = {
      kind: "ReplicaSet",
      name: "web",
      uid: "uid-web",
      apiVersion: "apps/v1",
      controller: true,
    };
    await using node = await startNode({
      flags: {
        evictionLimitsWindow: "1h",
        evictionLimitsPerNode: "3",
        evictionLimitsPerNamespace: "2",
        evictionLimitsPerOwner: "1",
        evictionBurst: "-1",
      },
    });
    for (const name of ["web-1", "web-2"]) node.addPod(name, "shop", { ownerReferences: [owner] });
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/now");
    await open.see("evictions within 60 min; any number in a round");
    force(node, ["web-1", "web-2"]);
    await open.see("not now", "1 (owner limit)");
    await row(open, limits, "ReplicaSet shop/web", "1 of 1", /in \d+ min/).waitFor();
    const second = row(open, inProgress, "on hold: owner limit", "requested by memory-watch");
    await second.filter({ hasText: /allowed in \d+ min/ }).waitFor();
    // None is on hold after a round in which the plugin did not answer in time.
    const onHold = await until(
      "one is on hold",
      async () => (await node.agent.api("eviction/budgets")).limited[0],
    );
    await expectUntil(second, onHold.until);
    node.addPod("cart", "shop");
    node.addPod("till", "shop");
    force(node, ["cart", "till"]);
    await open.see(/\d \(namespace limit\)/);
    await row(open, inProgress, "on hold: namespace limit").waitFor();
    await row(open, limits, "namespace shop", "2 of 2", /in \d+ min/).waitFor();
    for (const name of ["one", "two"]) node.addPod(name);
    force(node, ["one", "two"]);
    await open.see(/\d \(node limit\)/);
    for (const [name, used, of] of [
      ["this node", "3 of 3", (budgets: Budgets) => budgets.node],
      ["namespace shop", "2 of 2", (budgets: Budgets) => budgets.namespaces[0]!],
      ["ReplicaSet shop/web", "1 of 1", (budgets: Budgets) => budgets.owners[0]!],
    ] as const) {
      const full = row(open, limits, name, used, /in \d+ min/);
      await full.waitFor();
      await expectUntil(full, of(await node.agent.api("eviction/budgets")).freeAt);
    }
    expect(await accessibilityProblems(open.page)).toEqual([]);
    open.expectNoProblems();
  });

  it("pods beyond the burst are queued for the next round, in which more of them are evicted", async () => {
    const clock = new SteppedClock();
    await using node = await startNode({
      clock,
      flags: { evictionBurst: "1", evictionSyncPeriod: "5m", evictionOutOfTurnRounds: "false" },
    });
    const names = Array.from({ length: 30 }, (_, at) => `batch-${at}`);
    for (const name of names) node.addPod(name);
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/now");
    await open.see(/; at most 1 in a round/);
    const nextRound = (what: string, isThere: () => Promise<boolean>) =>
      until(what, async () => {
        if (await isThere()) return true;
        clock.advance(PERIOD_MS);
        return false;
      });
    const queued = async (): Promise<{ name: string }[]> => (await node.agent.api("eviction/budgets")).queued;
    force(node, names);
    await nextRound("some are queued", async () => (await queued()).length > 0);
    await eventually(async () => {
      const links = await row(open, inProgress, "queued").getByRole("link").allInnerTexts();
      expect(links.length).toBeGreaterThan(0);
      expect(links).toEqual((await queued()).map(({ name }) => `default/${name}`));
    });
    const first = await row(open, inProgress, "queued").first().textContent();
    expect(first).toContain("in the next round, if it is still requested");
    expect(first).toContain("the burst limit of its round was reached");
    const before = await queued();
    await nextRound("a further one is evicted", async () => (await queued()).length < before.length);
    await until("the first of the queue is evicted", () =>
      node.cluster.evictions().includes(before[0]!.name),
    );
    force(node, []);
    await nextRound("the others are not requested any more", async () => (await queued()).length === 0);
    await row(open, inProgress, "queued").first().waitFor({ state: "detached" });
    open.expectNoProblems();
  });

  it("with a burst of 0 no pod is evicted, and the page shows why", async () => {
    await using node = await startNode({ flags: { evictionBurst: "0" } });
    node.addPod("web");
    await using open = await OpenPage.open(browser, node.agent.address);
    await open.goTo("#/now");
    force(node, ["web"]);
    const waiting = row(open, inProgress, "default/web", "queued");
    await waiting.waitFor();
    expect(await waiting.textContent()).toContain("not while eviction.burst is 0");
    await open.see(/; none in a round: eviction\.burst is 0/);
    expect(node.cluster.evictions()).toEqual([]);
    open.expectNoProblems();
  });
});
