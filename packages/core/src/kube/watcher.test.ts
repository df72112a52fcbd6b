import { getEventListeners } from "node:events";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock, silentLogger } from "../lib/index.ts";
import {
  clientOf,
  type Exchange,
  nodes,
  sendJson,
  sendStatus,
  startServer,
  type TestClient,
  type TestServer,
} from "./testing/test-server.ts";
import type { WatchHandler } from "./types.ts";
import { Watcher } from "./watcher.ts";

const object = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });
const line = (type: string, value: unknown) => `${JSON.stringify({ type, object: value })}\n`;
const isWatch = ({ url }: Exchange) => url.searchParams.has("watch");
const versionOf = ({ url }: Exchange) => url.searchParams.get("resourceVersion");

let server: TestServer;
let clock: FakeClock;
let connection: TestClient;
let controller: AbortController;
let running: Promise<void>;
let delivered: string[];
let listVersion: string;

beforeEach(async () => {
  listVersion = "10";
  server = await startServer((exchange) => {
    if (!isWatch(exchange))
      sendJson(exchange.response, { metadata: { resourceVersion: listVersion }, items: [object("a", "9")] });
    else exchange.response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  });
  clock = new FakeClock();
  connection = clientOf(server, { clock, burst: 1_000 });
  controller = new AbortController();
  delivered = [];
});

afterEach(async () => {
  controller.abort(new Error("test over"));
  await running;
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  connection.client.close();
  await server[Symbol.asyncDispose]();
});

function start(handler: Partial<WatchHandler> = {}): Watcher {
  const { client, metrics } = connection;
  const context = { client, clock, log: silentLogger, metrics, random: () => 0.2 };
  const watcher = new Watcher(context, {
    resource: nodes,
    fieldSelector: "metadata.name=a",
    handler: {
      onReplace: (objects) => delivered.push(`replace ${objects.map(({ metadata }) => metadata.name)}`),
      onUpsert: ({ metadata }) => delivered.push(`upsert ${metadata.name}`),
      onDelete: ({ metadata }) => delivered.push(`delete ${metadata.name}`),
      ...handler,
    },
  });
  running = watcher.run(controller.signal);
  return watcher;
}

const watches = () => server.exchanges.filter(isWatch);
const lists = () => server.exchanges.filter((exchange) => !isWatch(exchange));
const nthWatch = async (count: number) => {
  await until(`watch ${count} is open`, () => watches().length >= count);
  return watches()[count - 1]!.response;
};
// The retry timer is set once the failure has arrived through the socket.
const stepWhenWaiting = async (restarts: number, ms: number) => {
  const total = async () => {
    const { values } = await connection.metrics.watchRestarts.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  };
  await until(`restart ${restarts}`, async () => (await total()) >= restarts);
  await clock.step(ms);
};
/** Waits for the watch after so many failures, and the first delay between attempts. */
const watchAfter = async (restarts: number) => {
  await stepWhenWaiting(restarts, 1_300);
  return await nthWatch(restarts + 1);
};
/** Starts a watcher whose first watch has received a bookmark of version 40. */
const startWithBookmark = async () => {
  let bookmarks = 0;
  const watcher = start({ onBookmark: () => void bookmarks++ });
  const watch = await nthWatch(1);
  watch.write(line("BOOKMARK", { metadata: { resourceVersion: "40" } }));
  await until("the bookmark is there", () => bookmarks === 1);
  return { watcher, watch };
};

describe("a watcher", () => {
  test("lists from the cache, then watches from there, and delivers in order", async () => {
    const watcher = start();
    expect(watcher.isSynced).toBe(false);
    await watcher.synced;
    const watch = await nthWatch(1);
    watch.write(
      line("ADDED", object("b", "11")) +
        line("MODIFIED", object("b", "12")) +
        line("DELETED", object("a", "13")),
    );
    await until("all is delivered", () => delivered.length === 4);
    expect(delivered).toEqual(["replace a", "upsert b", "upsert b", "delete a"]);
    expect(lists()[0]!.url.search).toBe("?fieldSelector=metadata.name%3Da&limit=500&resourceVersion=0");
    expect(watches()[0]!.url.search).toBe(
      "?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=360&fieldSelector=metadata.name%3Da",
    );
  });

  test("continues from the last bookmark after a reset, without a list", async () => {
    start();
    const first = await nthWatch(1);
    first.write(line("ADDED", object("b", "11")) + line("BOOKMARK", { metadata: { resourceVersion: "40" } }));
    await until("the event is delivered", () => delivered.length === 2);
    first.socket!.resetAndDestroy();
    await watchAfter(1);
    expect(watches().map(versionOf)).toEqual(["10", "40"]);
    expect(lists()).toHaveLength(1);
    expect(delivered).toEqual(["replace a", "upsert b"]);
  });

  test("begins the next watch at once when the server ended one in time", async () => {
    start();
    const first = await nthWatch(1);
    await clock.step(360_000);
    first.end();
    await nthWatch(2);
    expect(lists()).toHaveLength(1);
  });

  test("does not spin when the server ends every watch at once", async () => {
    start();
    for (const [count, delayMs] of [
      [1, 1_000],
      [2, 5_000],
      [3, 2_000],
    ] as const) {
      (await nthWatch(count)).end();
      await stepWhenWaiting(count, delayMs - 1);
      expect(watches()).toHaveLength(count);
      await clock.step(1);
    }
  });

  test.each([
    ["by HTTP 410", (exchange: Exchange) => sendStatus(exchange.response, 410, "too old")],
    [
      "by an ERROR event",
      ({ response }: Exchange) => response.write(line("ERROR", { code: 410, message: "too old" })),
    ],
    ["by a line that is no JSON", ({ response }: Exchange) => response.write('{"type":"ADDED","obj\n')],
    ["by an event without object", ({ response }: Exchange) => response.write('{"type":"ADDED"}\n')],
    ["by an unknown type", ({ response }: Exchange) => response.write(line("CHANGED", object("b", "11")))],
  ])("lists again when its version is lost %s", async (_, answer) => {
    const serve = server.handler;
    server.handler = (exchange) => {
      if (isWatch(exchange) && watches().length === 1) answer(exchange);
      else serve(exchange);
    };
    start();
    await until("the first watch came", () => watches().length === 1);
    listVersion = "50";
    await watchAfter(1);
    expect(watches().map(versionOf)).toEqual(["10", "50"]);
    expect(delivered).toEqual(["replace a", "replace a"]);
  });

  test("waits before the next watch when the server ended one early, as it does with those of all nodes when it stops", async () => {
    start();
    const first = await nthWatch(1);
    await clock.step(60_000);
    first.end();
    await stepWhenWaiting(1, 999);
    expect(watches()).toHaveLength(1);
    await clock.step(1);
    await nthWatch(2);
    expect(lists()).toHaveLength(1);
  });

  test("asks for a list that is not older after an expired version, and for the newest when that led to another", async () => {
    start();
    (await nthWatch(1)).write(line("ERROR", { code: 410, message: "too old" }));
    (await watchAfter(1)).write(line("ERROR", { code: 410, message: "too old" }));
    await stepWhenWaiting(2, 5_000);
    await nthWatch(3);
    expect(lists().map(versionOf)).toEqual(["0", "10", null]);
    // With a limit, an old server would serve it from etcd.
    expect(lists()[1]!.url.search).toBe(
      "?fieldSelector=metadata.name%3Da&resourceVersion=10&resourceVersionMatch=NotOlderThan",
    );
  });

  test("asks for the newest list when the server never gets as far as what was seen, as after a backup was restored", async () => {
    const serve = server.handler;
    server.handler = (exchange) => {
      if (isWatch(exchange) && watches().length === 1) sendStatus(exchange.response, 410, "too old");
      else if (versionOf(exchange) === "10" && !isWatch(exchange)) {
        const details = { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large" }] };
        sendJson(exchange.response, { kind: "Status", code: 504, message: "Too large", details }, 504);
      } else serve(exchange);
    };
    start();
    await stepWhenWaiting(1, 1_300);
    listVersion = "3";
    await stepWhenWaiting(2, 5_000);
    await nthWatch(2);
    expect(lists().map(versionOf)).toEqual(["0", "10", null]);
    expect(watches().map(versionOf)).toEqual(["10", "3"]);
  });

  test("survives a line that never ends", async () => {
    start();
    const watch = await nthWatch(1);
    const part = "x".repeat(1024 * 1024);
    watch.on("error", () => {});
    for (let sent = 0; sent <= 16; sent++) watch.write(part);
    await watchAfter(1);
    expect(lists()).toHaveLength(2);
    expect(await connection.registry.metrics()).toContain(
      'watch_restarts_total{resource="nodes",reason="malformed"} 1',
    );
  });

  test("resumes after other ERROR events, and lists again when they don't end", async () => {
    start();
    for (const count of [1, 2, 3]) {
      (await nthWatch(count)).write(line("ERROR", { code: 500, message: "etcd" }));
      await stepWhenWaiting(count, 30_000);
    }
    await nthWatch(4);
    expect(lists()).toHaveLength(2);
  });

  test("gives up a server that is silent for too long", async () => {
    const watcher = start();
    await nthWatch(1);
    await until("the watch is open", () => watcher.healthCheck().check().message === "watching");
    await clock.step(389_999);
    expect(watcher.lastError).toBeUndefined();
    await clock.step(1);
    await watchAfter(1);
    expect(versionOf(watches()[1]!)).toBe("10");
    await until("the old connection is closed", () => watches()[0]!.request.socket.destroyed);
  });

  test("gives up one that has sent bookmarks sooner: they come every minute, so that silence means it is cut off", async () => {
    const { watcher } = await startWithBookmark();
    await clock.step(179_999);
    expect(watcher.lastError).toBeUndefined();
    await clock.step(1);
    await watchAfter(1);
    expect(versionOf(watches()[1]!)).toBe("40");
  });

  test("watches for longer after bookmarks, and gives up such a watch after three without a message", async () => {
    const { watcher, watch } = await startWithBookmark();
    watch.socket!.resetAndDestroy();
    await watchAfter(1);
    expect(watches()[1]!.url.searchParams.get("timeoutSeconds")).toBe("1440");
    await until("the second is open", () => watcher.healthCheck().check().message === "watching");
    await clock.step(180_000);
    await watchAfter(2);
  });

  test("notifies the handler each time a watch is open", async () => {
    let opened = 0;
    start({ onOpen: () => void opened++ });
    const first = await nthWatch(1);
    await until("the first watch is open", () => opened === 1);
    first.socket!.resetAndDestroy();
    await watchAfter(1);
    await until("the second watch is open", () => opened === 2);
  });

  test("contains a handler that throws, or rejects", async () => {
    const broken = () => {
      delivered.push("threw");
      throw new Error("handler broke");
    };
    start({ onReplace: broken, onUpsert: async () => broken() });
    const watch = await nthWatch(1);
    watch.write(line("ADDED", object("b", "11")) + line("DELETED", object("b", "12")));
    await until("all is delivered", () => delivered.length === 3);
    expect(delivered).toEqual(["threw", "threw", "delete b"]);
    expect(watches()).toHaveLength(1);
    expect(await connection.registry.metrics()).toContain('watch_handler_errors_total{resource="nodes"} 2');
  });

  test("honours Retry-After and backs off while the server is unavailable, then syncs", async () => {
    const serve = server.handler;
    server.handler = ({ response }) => sendStatus(response, 429, "busy", { "retry-after": "20" });
    const watcher = start();
    await stepWhenWaiting(1, 20_999);
    expect(server.exchanges).toHaveLength(1);
    server.handler = serve;
    await clock.step(1);
    await watcher.synced;
    await nthWatch(1);
  });
});

test("health fails before the first list, holds while a watch is open, and fails when contact is lost for long", async () => {
  const serve = server.handler;
  server.handler = ({ response }) => sendStatus(response, 503, "starting");
  const watcher = start();
  const check = watcher.healthCheck();
  await stepWhenWaiting(1, 0);
  expect(check.check()).toMatchObject({ ok: false, message: /no list yet after 0 s: GET .*503: starting/ });
  server.handler = serve;
  await clock.step(1_300);
  const watch = await nthWatch(1);
  await until("it is well", () => check.check().ok);
  await clock.step(300_000);
  expect(check.check()).toEqual({ ok: true, message: "watching" });
  server.handler = ({ response }) => sendStatus(response, 503, "away");
  watch.destroy();
  await stepWhenWaiting(2, 59_000);
  expect(check.check()).toMatchObject({ ok: true });
  await clock.step(2_000);
  expect(check.check()).toMatchObject({ ok: false, message: /no watch for 61 s/ });
});

test("health fails when each watch ends at once: what it was to tell is not known, though the server accepts it", async () => {
  const serve = server.handler;
  server.handler = (exchange) => {
    if (isWatch(exchange)) exchange.response.writeHead(200, { "content-type": "application/json" }).end();
    else serve(exchange);
  };
  const watcher = start();
  await watcher.synced;
  const check = () => watcher.healthCheck().check();
  await stepWhenWaiting(1, 30_000);
  expect(check().ok).toBe(true);
  for (const restarts of [2, 3]) await stepWhenWaiting(restarts, 30_000);
  expect(check()).toMatchObject({ ok: false, message: /no watch for \d+ s: .*the server ended the watch/ });

  server.handler = serve;
  await stepWhenWaiting(4, 30_000);
  await until("the watch is open", () => watcher.lastError === undefined);
  await clock.step(5_000);
  expect(check()).toEqual({ ok: true, message: "watching" });
});

test.each<[string, (exchange: Exchange, message: string) => void]>([
  ["is refused", ({ response }, message) => sendStatus(response, 403, message)],
  [
    "ends with such an ERROR event",
    ({ response }, message) => response.write(line("ERROR", { code: 403, message })),
  ],
])(
  "health fails at once when the watch %s because it is forbidden, and names the right",
  async (_, answer) => {
    const serve = server.handler;
    server.handler = (exchange) => {
      if (isWatch(exchange)) answer(exchange, 'cannot watch resource "nodes"');
      else serve(exchange);
    };
    const watcher = start();
    await watcher.synced;
    await until("the watch was refused", () => watcher.lastError !== undefined);
    expect(watcher.healthCheck().check()).toMatchObject({
      ok: false,
      message: /cannot watch resource "nodes"/,
      errorId: "NK1207",
    });
  },
);
