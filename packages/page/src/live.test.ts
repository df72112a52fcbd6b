import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Follower } from "./live.ts";
import { NodeClock } from "./node-clock.ts";

const START = Date.UTC(2026, 10, 22, 3);

/** The browser's EventSource, as far as the page uses it. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static readonly opened: Source[] = [];
  readonly url: string;
  isClosed = false;
  readyState = 1;

  constructor(url: string) {
    super();
    this.url = url;
    Source.opened.push(this);
  }

  close(): void {
    this.isClosed = true;
  }

  send(name: string, data: unknown, lastEventId = ""): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data), lastEventId }));
  }
}

const createPage = () =>
  Object.assign(new EventTarget(), { visibilityState: "visible", baseURI: "http://127.0.0.1:10290/" });
let page: ReturnType<typeof createPage>;

function show(state: "visible" | "hidden"): void {
  page.visibilityState = state;
  page.dispatchEvent(new Event("visibilitychange"));
}

let network: EventTarget;

const newest = () => Source.opened.at(-1)!;

beforeEach(() => {
  vi.useFakeTimers({ now: START });
  Source.opened.length = 0;
  page = createPage();
  network = new EventTarget();
  vi.stubGlobal("document", page);
  vi.stubGlobal("addEventListener", network.addEventListener.bind(network));
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => draw());
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function follow(clock = new NodeClock()): Follower {
  const follower = new Follower(() => {}, clock);
  follower.follow([]);
  return follower;
}

it("is stale since the last message, not since the silence was noticed", () => {
  const { live } = follow();
  newest().send("node", { nodeName: "worker-1" });
  expect(live.connection).toEqual({ state: "open" });
  vi.advanceTimersByTime(60_000);
  expect(live.connection).toMatchObject({ state: "lost", at: START });
});

it("has only what is followed: the rest would become old", () => {
  const follower = follow();
  const { live } = follower;
  follower.follow(["devices"]);
  newest().send("node", { nodeName: "worker-1" });
  newest().send("devices", []);
  expect(live.devices).toEqual([]);
  follower.follow([]);
  newest().send("open", { topics: ["node", "events"] });
  expect(live).not.toHaveProperty("devices");
  expect(live.node).toEqual({ nodeName: "worker-1" });
});

it("is stale since before it was hidden, where the agent has stopped meanwhile", () => {
  const { live } = follow();
  newest().send("node", { nodeName: "worker-1" });
  show("hidden");
  vi.advanceTimersByTime(8 * 3_600_000);
  expect(newest().isClosed).toBe(true);
  show("visible");
  newest().dispatchEvent(new Event("error"));
  expect(live.connection).toMatchObject({ state: "lost", at: START });
});

it("continues after the last message when it is shown again", () => {
  follow();
  newest().send("marks", { id: 7 }, "log-3.5.7");
  show("hidden");
  vi.advanceTimersByTime(60_000);
  expect(Source.opened).toHaveLength(1);
  show("visible");
  expect(Source.opened).toHaveLength(2);
  expect(newest().url).toContain("cursor=log-3.5.7");
});

describe("a computer that slept", () => {
  const HOUR_MS = 3_600_000;

  // The timers stand still, and fire when it wakes.
  const sleep = (ms: number) => vi.setSystemTime(Date.now() + ms);

  it.each([
    ["a timer that fires late", () => vi.advanceTimersByTime(1_000)],
    ["being shown", () => show("visible")],
    ["being resumed by the browser", () => page.dispatchEvent(new Event("resume"))],
  ])("is noticed by %s: the page is stale, and connects again where it was", (_, wake) => {
    const { live } = follow();
    newest().send("marks", { id: 7 }, "log-3.5.7");
    sleep(HOUR_MS);
    wake();
    expect(live.connection).toEqual({ state: "lost", at: START, why: "this computer slept" });
    expect(Source.opened).toHaveLength(2);
    expect(Source.opened[0]!.isClosed).toBe(true);
    expect(newest().url).toContain("cursor=log-3.5.7");
    newest().send("heartbeat", {});
    expect(live.connection).toEqual({ state: "open" });
    vi.advanceTimersByTime(3_000);
    expect(Source.opened).toHaveLength(2);
  });

  it("does not wait for the next try where the connection was lost before", () => {
    follow();
    newest().dispatchEvent(new Event("error"));
    sleep(HOUR_MS);
    show("visible");
    expect(Source.opened).toHaveLength(2);
  });

  it("is not taken for one where the browser was busy, or the clock is set back", () => {
    const { live } = follow();
    newest().send("node", { nodeName: "worker-1" });
    sleep(4_000);
    vi.advanceTimersByTime(1_000);
    sleep(-HOUR_MS);
    vi.advanceTimersByTime(1_000);
    expect(Source.opened).toHaveLength(1);
    expect(live.connection).toEqual({ state: "open" });
  });

  it("opens nothing while the page is hidden", () => {
    follow();
    show("hidden");
    sleep(HOUR_MS);
    page.dispatchEvent(new Event("resume"));
    network.dispatchEvent(new Event("online"));
    expect(Source.opened).toHaveLength(1);
    show("visible");
    expect(Source.opened).toHaveLength(2);
  });
});

it("has why the node's pods are not known, until the first snapshot", () => {
  const { live } = follow();
  newest().send("waiting", { topic: "events", id: "NK1408", message: "no relist has succeeded" });
  expect(live).toMatchObject({ waitingFor: "no relist has succeeded", connection: { state: "open" } });
  newest().send("snapshot", { kind: "snapshot", cursor: "log-1", pods: [] }, "log-1.-.-");
  expect(live).toMatchObject({ waitingFor: undefined, missedAt: START });
});

it("connects again when the network is back", () => {
  const { live } = follow();
  newest().send("node", { nodeName: "worker-1" });
  network.dispatchEvent(new Event("online"));
  expect(live.connection).toMatchObject({ state: "lost", at: START });
  expect(Source.opened).toHaveLength(2);
});

it("is stale when it is shown again, until the first message", () => {
  const { live } = follow();
  newest().send("node", { nodeName: "worker-1" });
  show("hidden");
  vi.advanceTimersByTime(60_000);
  show("visible");
  expect(live.connection).toEqual({ state: "lost", at: START, why: "this page was hidden" });
  newest().send("open", { topics: [] });
  expect(live.connection).toEqual({ state: "open" });
});

/** The browser closes a stream for any response but 200, and does not expose it. A new request gets it too. */
function reject(status: number, message: string): void {
  vi.stubGlobal("fetch", async () => Response.json({ error: { message } }, { status }));
  newest().readyState = Source.CLOSED;
  newest().dispatchEvent(new Event("error"));
}

it("starts again without a cursor that the agent rejects", async () => {
  const { live } = follow();
  newest().send("events", { event: { sequence: 1 } }, "log-1.-.-");
  newest().dispatchEvent(new Event("error"));
  vi.advanceTimersByTime(3_000);
  expect(newest().url).toContain("cursor=log-1");
  expect(live.events).toHaveLength(1);
  reject(400, "malformed cursor");
  const connection = { state: "lost", at: START, why: "stream rejected: malformed cursor" };
  await vi.waitFor(() => expect(live).toMatchObject({ events: [], connection }));
  const { missedAt } = live;
  expect(missedAt).toBeGreaterThanOrEqual(START + 3_000);
  vi.advanceTimersByTime(3_000);
  expect(newest().url).not.toContain("cursor");
  reject(400, "unknown topic");
  await vi.waitFor(() => expect(live.connection).toMatchObject({ why: "stream rejected: unknown topic" }));
  expect(live.missedAt).toBe(missedAt);
});

it.each([
  [502, "the agent does not respond", "stream rejected: the agent does not respond"],
  [429, "16 streams are open, which is the limit", "the agent already serves 16 streams, which is the limit"],
])("resumes after a response %d, which may be a proxy's, and shows why", async (status, message, why) => {
  const { live } = follow();
  newest().send("events", { event: { sequence: 1 } }, "log-1.-.-");
  for (let time = 0; time < 2; time++) {
    const opened = Source.opened.length;
    reject(status, message);
    await vi.waitFor(() => expect(Source.opened).toHaveLength(opened + 1), 5_000);
    expect(newest().url).toContain("cursor=log-1");
    expect(live.connection).toEqual({ state: "lost", at: START, why, isRefused: false });
  }
  expect(live).toMatchObject({ events: [{ sequence: 1 }], missedAt: undefined });
  // The agent responds again.
  vi.stubGlobal("fetch", async () => new Response("event: open\n\n"));
  newest().readyState = Source.CLOSED;
  newest().dispatchEvent(new Event("error"));
  await vi.waitFor(() => expect(live.connection).toMatchObject({ why: "the connection ended" }));
});

it.each([
  [401, "your sign-in has ended"],
  [403, "operator may not get /nodekeeper/api/v1/stream"],
])(
  "shows that the user has to sign in again where the agent answers %d, and looks again later",
  async (status, why) => {
    const { live } = follow();
    newest().send("node", { nodeName: "worker-1" });
    reject(status, "operator may not get /nodekeeper/api/v1/stream");
    await vi.waitFor(() =>
      expect(live.connection).toEqual({ state: "lost", at: START, why, isRefused: true }),
    );
    const opened = Source.opened.length;
    vi.advanceTimersByTime(29_000);
    expect(Source.opened).toHaveLength(opened);
    vi.advanceTimersByTime(2_000);
    expect(Source.opened).toHaveLength(opened + 1);
    // Signed in again in another tab.
    newest().send("node", { nodeName: "worker-1" });
    expect(live.connection).toEqual({ state: "open" });
  },
);

it("uses the node's clock, which the first answer shows, where the browser's is another", async () => {
  const nodeTime = START - 300_000;
  const headers = { Date: new Date(nodeTime).toUTCString() };
  vi.stubGlobal("fetch", async () => new Response("{}", { headers }));
  const clock = new NodeClock();
  const { live } = follow(clock);
  newest().dispatchEvent(new Event("open"));
  await vi.waitFor(() => expect(Math.abs(clock.now() - nodeTime)).toBeLessThan(1_000));
  newest().send("node", { nodeName: "worker-1" });
  newest().dispatchEvent(new Event("error"));
  expect(live.connection).toMatchObject({ state: "lost", at: expect.closeTo(nodeTime, -4) });
});
