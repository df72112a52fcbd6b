import { rmSync } from "node:fs";
import { until } from "@nodekeeper/testing/until";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { TcpProxy } from "../e2e/support/tcp-proxy.ts";
import { connectTo } from "./support/chromium.ts";
import { type PageNode, startNode } from "./support/node.ts";
import { OpenPage } from "./support/open-page.ts";
import { keepStreamed, type Streamed, streamed } from "./support/streamed.ts";

// What a browser logs of a connection that is refused or reset.
const LOST = /net::ERR_/;
const STALE = /Reconnecting\./;

let browser: Browser;
beforeAll(async () => {
  browser = await connectTo(inject("browser"));
});
afterAll(() => browser?.close());

/** The page at a view, with one pod on the node. */
async function openAt(node: PageNode, hash: string, address = node.agent.address): Promise<OpenPage> {
  const open = await OpenPage.open(browser, address, { expected: LOST });
  await keepStreamed(open.page);
  await open.goTo(hash);
  await open.see("worker-1", "memory-watch");
  return open;
}

const sequencesOf = (messages: readonly Streamed[]): number[] =>
  messages.flatMap(({ name, data }) => (name === "events" ? [data.event.sequence as number] : []));

/** Every number from the first to the last, once. */
function expectWithoutGap(numbers: readonly number[]): void {
  const [first = 0] = numbers;
  expect(numbers).toEqual(numbers.map((_, at) => first + at));
}

function exited(uid: string) {
  return ({ name, data }: Streamed) =>
    name === "events" && data.event.pod.uid === uid && data.event.type === "ContainerDied";
}

it("shows that it is stale while the agent is stopped, and continues where it was when it runs again", async () => {
  await using node = await startNode();
  const before = node.addPod("before");
  await using open = await openAt(node, "#/plugins");
  node.runtime.exit(before.container, 3);
  await until("the exit is received", async () => (await streamed(open.page)).some(exited(before.uid)), {
    explain: () => streamed(open.page),
  });

  await node.agent.stop();
  await open.see(STALE);
  // What was known is still there to be read.
  await open.see("memory-watch");
  const during = node.addPod("during");

  await node.startAgent();
  node.runtime.exit(during.container, 4);
  await until(
    "the later exit is received",
    async () => (await streamed(open.page)).some(exited(during.uid)),
    {
      explain: () => streamed(open.page),
    },
  );
  await open.seeNoLonger(STALE);
  const messages = await streamed(open.page);
  expect(messages.filter(({ name }) => name === "snapshot")).toEqual([]);
  expectWithoutGap(sequencesOf(messages));
  open.expectNoProblems();
});

it("misses nothing that happens while the network is cut, and gets nothing twice", async () => {
  await using node = await startNode();
  const proxy = await TcpProxy.start(Number(node.agent.address.split(":")[1]));
  try {
    const pods = ["one", "two", "three"].map((name) => node.addPod(name));
    await using open = await openAt(node, "#/plugins", `127.0.0.1:${proxy.port}`);
    for (const { container, uid } of pods) {
      proxy.refuse();
      await open.see(STALE);
      node.runtime.exit(container, 1);
      await until("the agent knows of it", async () => {
        const { items } = await node.agent.api("events");
        return items.some((item: never) => exited(uid)({ name: "events", data: item }));
      });
      proxy.resume();
      await open.seeNoLonger(STALE);
      await until("the page gets it", async () => (await streamed(open.page)).some(exited(uid)));
    }
    const messages = await streamed(open.page);
    expect(messages.filter(({ name }) => name === "snapshot")).toEqual([]);
    expectWithoutGap(sequencesOf(messages));
    open.expectNoProblems();
  } finally {
    await proxy.stop();
  }
});

it("recovers where the agent has lost its log and its records: its position is one of the future then", async () => {
  await using node = await startNode();
  node.addPod("first");
  node.addPod("second");
  await using open = await openAt(node, "#/plugins");
  await node.evict("first");
  await until("the round is received", async () =>
    (await streamed(open.page)).some(({ name }) => name === "rounds"),
  );
  await node.agent.stop();
  await open.see(STALE);
  rmSync(node.agent.stateDir, { recursive: true });
  await node.startAgent();
  await open.seeNoLonger(STALE);
  await node.evict("second");
  const victims = async () =>
    (await streamed(open.page)).flatMap(({ name, data }) =>
      name === "rounds" ? data.victims.map((victim: { name: string }) => victim.name) : [],
    );
  await until("the round of the second", async () => (await victims()).includes("second"), {
    explain: () => streamed(open.page),
  });
  expect(await victims()).toEqual(["first", "second"]);
  expect((await streamed(open.page)).some(({ name }) => name === "snapshot")).toBe(true);
  open.expectNoProblems();
});

it("continues from a position so old that its events have expired", async () => {
  await using node = await startNode({ flags: { lifecycleLogCapacity: "100" } });
  const pod = node.addPod("restarts");
  const proxy = await TcpProxy.start(Number(node.agent.address.split(":")[1]));
  try {
    await using open = await openAt(node, "#/plugins", `127.0.0.1:${proxy.port}`);
    proxy.refuse();
    await open.see(STALE);
    const first = (await node.agent.api("events?limit=1")).items[0].cursor;
    let { container } = pod;
    await until("the oldest events have expired", async () => {
      node.runtime.removeContainer(container);
      container = node.runtime.runContainer(pod.sandbox, { name: "app", attempt: 1 });
      const [oldest] = (await node.agent.api("events?limit=1")).items;
      return oldest.cursor !== first;
    });
    proxy.resume();
    await open.seeNoLonger(STALE);
    await until("the pods of now are received", async () =>
      (await streamed(open.page)).some(({ name }) => name === "snapshot"),
    );
    open.expectNoProblems();
  } finally {
    await proxy.stop();
  }
});

it("has no connection while it is hidden for long, and continues where it was when it is visible", async () => {
  await using node = await startNode();
  const pod = node.addPod("quiet");
  const proxy = await TcpProxy.start(Number(node.agent.address.split(":")[1]));
  try {
    await using open = await OpenPage.open(browser, `127.0.0.1:${proxy.port}`, { expected: LOST });
    await open.page.clock.install();
    await keepStreamed(open.page);
    await open.goTo("#/plugins");
    await open.see("worker-1", "memory-watch");
    await setHidden(open, true);
    await until("the stream is closed", async () => {
      await open.page.clock.fastForward(31_000);
      return proxy.cut() === 0;
    });
    node.runtime.exit(pod.container, 5);
    await until("the agent knows of it", async () => {
      const { items } = await node.agent.api("events");
      return items.some((item: never) => exited(pod.uid)({ name: "events", data: item }));
    });
    await setHidden(open, false);
    await until("the page gets it", async () => (await streamed(open.page)).some(exited(pod.uid)));
    await open.seeNoLonger(STALE);
    const messages = await streamed(open.page);
    expect(messages.filter(({ name }) => name === "snapshot")).toEqual([]);
    expectWithoutGap(sequencesOf(messages));
    open.expectNoProblems();
  } finally {
    await proxy.stop();
  }
});

// A browser without a window shows every page.
async function setHidden({ page }: OpenPage, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    const state = { hidden, visibilityState: hidden ? "hidden" : "visible" };
    for (const [name, value] of Object.entries(state))
      Object.defineProperty(document, name, { configurable: true, value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

it("connects again at once, where it was, when the computer has slept", async () => {
  await using node = await startNode();
  const pod = node.addPod("quiet");
  await using open = await OpenPage.open(browser, node.agent.address, { expected: LOST });
  await open.page.clock.install();
  await keepStreamed(open.page);
  const streams: string[] = [];
  open.page.on("request", (request) => {
    if (request.url().includes("/api/v1/stream")) streams.push(request.url());
  });
  await open.goTo("#/plugins");
  await open.see("worker-1", "memory-watch");
  const { length } = streams;
  // Timers that were due meanwhile fire once, as after sleep.
  await open.page.clock.fastForward(3_600_000);
  await until("another stream is asked for", () => streams.length > length);
  expect(streams.at(-1)).toContain("cursor=");
  node.runtime.exit(pod.container, 5);
  await until("the page gets it", async () => (await streamed(open.page)).some(exited(pod.uid)));
  await open.seeNoLonger(STALE);
  expectWithoutGap(sequencesOf(await streamed(open.page)));
  open.expectNoProblems();
});

it("loads a view whose file was lost on the way, and stays where it was", async () => {
  await using node = await startNode();
  await using open = await openAt(node, "#/plugins");
  let lost = 0;
  await open.page.route("**/page/*.js", async (route) => {
    if (lost > 0) return route.continue();
    lost++;
    return route.abort("connectionreset");
  });
  await open.page.getByRole("link", { name: "Resources" }).click();
  await open.page.getByRole("link", { name: "Topology" }).waitFor();
  expect(lost).toBe(1);
  expect(await open.page.evaluate(() => location.hash)).toBe("#/resources");
  open.expectNoProblems();
});
