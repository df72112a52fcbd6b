import { getEventListeners } from "node:events";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, test } from "vitest";
import { FakeClock } from "../lib/index.ts";
import { clientOf, nodes, sendJson, sendStatus, startServer } from "./testing/test-server.ts";

const node = { kind: "Node", metadata: { name: "n" } };

describe("statuses", () => {
  test.each([
    [400, "invalid", "NK1210"],
    [401, "unauthenticated", "NK1206"],
    [403, "forbidden", "NK1207"],
    [404, "notFound", undefined],
    [405, "unsupported", undefined],
    [406, "unsupported", undefined],
    [409, "conflict", "NK1214"],
    [410, "expired", undefined],
    [415, "unsupported", undefined],
    [422, "invalid", "NK1210"],
    [429, "throttled", "NK1209"],
    [500, "unavailable", "NK1204"],
    [503, "unavailable", "NK1204"],
    [504, "unavailable", "NK1204"],
  ])("%i is %s, with method, path, status and message", async (status, code, id) => {
    await using server = await startServer(({ response }) => sendStatus(response, status, "because of that"));
    using test = clientOf(server);
    const call = test.client.get(nodes, "n");
    await expect(call).rejects.toMatchObject({
      code,
      id,
      message: `GET /api/v1/nodes/n: ${status}: because of that`,
    });
    expect(await test.registry.metrics()).toContain(
      `nodekeeper_kube_requests_total{verb="get",resource="nodes",code="${status}"} 1`,
    );
  });

  test("500 for an apply that does not fit the schema is invalid: the server blames itself, the body is wrong", async () => {
    const message =
      "failed to create typed patch object (/n; v1, Kind=Node): .status.x: field not declared in schema";
    await using server = await startServer(({ response }) => sendStatus(response, 500, message));
    using test = clientOf(server);
    const call = test.client.apply(nodes, { metadata: { name: "n" } });
    await expect(call).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining(message) });
  });

  test.each([
    ["7", 7_000],
    [new Date(1_700_000_030_000).toUTCString(), 30_000],
    ["99999999", 3_600_000],
    ["soon", undefined],
  ])("Retry-After %s is understood", async (value, retryAfterMs) => {
    const clock = new FakeClock(1_700_000_000_000);
    await using server = await startServer(({ response }) =>
      sendStatus(response, 429, "slow", { "retry-after": value }),
    );
    using test = clientOf(server, { clock });
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({ code: "throttled", retryAfterMs });
  });

  test("retryAfterSeconds of a Status is used where there is no header", async () => {
    await using server = await startServer(({ response }) =>
      sendJson(response, { kind: "Status", message: "later", details: { retryAfterSeconds: 2 } }, 500),
    );
    using test = clientOf(server);
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({
      code: "unavailable",
      retryAfterMs: 2_000,
    });
  });
});

test("a deadline retires all kept connections: of several that were cut without a word, one costs a call", async () => {
  const waiting: (() => void)[] = [];
  const dead = new Set<unknown>();
  await using server = await startServer(({ request, response }) => {
    if (dead.has(request.socket)) return;
    waiting.push(() => sendJson(response, node));
    // The first three are concurrent, so that each uses a separate connection.
    if (server.exchanges.length < 3) return;
    for (const answer of waiting.splice(0)) answer();
  });
  using test = clientOf(server);
  await Promise.all([1, 2, 3].map(() => test.client.get(nodes, "n")));
  for (const { request } of server.exchanges) dead.add(request.socket);
  await expect(test.client.get(nodes, "n", { deadlineMs: 100 })).rejects.toMatchObject({ code: "deadline" });
  expect(await test.client.get(nodes, "n")).toMatchObject(node);
  expect(server.connections).toBe(4);
});

describe("answers that are no answers", () => {
  test.each([200, 403, 404, 502])("HTML with status %i is unavailable and shown", async (status) => {
    await using server = await startServer(({ response }) => {
      response.writeHead(status, { "content-type": "text/html" }).end(`<html>${"login ".repeat(100)}`);
    });
    using test = clientOf(server);
    const error = await test.client.get(nodes, "n").catch((error) => error);
    expect(error).toMatchObject({ code: "unavailable", id: "NK1213" });
    expect(error.message).toMatch(new RegExp(`${status}.*text/html: "<html>login login`));
    expect(error.message.length).toBeLessThan(320);
  });

  test("a 404 in plain text, as for a path that is not served, is notFound", async () => {
    await using server = await startServer(({ response }) => {
      response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found");
    });
    using test = clientOf(server);
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({ code: "notFound" });
  });

  test("a connection cut in the body is unavailable", async () => {
    await using server = await startServer(({ response }) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write('{"kind":', () => response.destroy());
    });
    using test = clientOf(server);
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({
      code: "unavailable",
      id: "NK1204",
      message: /GET \/api\/v1\/nodes\/n: the connection was cut after 8 bytes/,
    });
  });

  test("a port without a listener is unavailable, with the address", async () => {
    using test = clientOf({ url: new URL("http://127.0.0.1:1") });
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({
      code: "unavailable",
      id: "NK1204",
      message: /127\.0\.0\.1:1/,
    });
  });

  test("an answer beyond the limit is refused, and an endless error is cut", async () => {
    await using server = await startServer(({ response, url }) => {
      response.writeHead(url.pathname.endsWith("error") ? 500 : 200, { "content-type": "text/plain" });
      const pour = () => {
        while (!response.destroyed && response.write("x".repeat(16_384)));
      };
      response.on("drain", pour);
      pour();
    });
    using test = clientOf(server);
    await expect(test.client.get(nodes, "n")).rejects.toMatchObject({
      code: "exhausted",
      id: "NK1211",
      message: /33554432 bytes/,
    });
    await expect(test.client.get(nodes, "error")).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("deadlines", () => {
  test.each(["headers", "body"])("hold while the server hangs before the %s end", async (where) => {
    const clock = new FakeClock();
    await using server = await startServer(({ response }) => {
      if (where === "body") response.writeHead(200, { "content-length": "10" }).write("{");
    });
    using test = clientOf(server, { clock });
    const call = test.client.get(nodes, "n", { deadlineMs: 3_000 });
    const failed = expect(call).rejects.toMatchObject({
      code: "deadline",
      id: "NK1204",
      message: /GET \/api\/v1\/nodes\/n.*3000 ms/,
    });
    await until("the request came", () => server.exchanges.length === 1);
    await clock.step(2_999);
    expect(server.exchanges[0]!.request.socket.destroyed).toBe(false);
    await clock.step(1);
    await failed;
    await until("the connection was closed", () => server.exchanges[0]!.request.socket.destroyed);
    expect(clock.timers).toBe(0);
  });

  test("an abort keeps its reason and leaves no listener", async () => {
    await using server = await startServer(({ response, url }) => {
      if (url.pathname.endsWith("good")) sendJson(response, node);
    });
    using test = clientOf(server);
    const controller = new AbortController();
    await test.client.get(nodes, "good", { signal: controller.signal });
    const call = test.client.get(nodes, "hang", { signal: controller.signal });
    await until("the request came", () => server.exchanges.length === 2);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  test("close ends calls under way", async () => {
    await using server = await startServer(() => {});
    using test = clientOf(server);
    const call = test.client.get(nodes, "hang");
    const failed = expect(call).rejects.toMatchObject({ code: "stopped" });
    await until("the request came", () => server.exchanges.length === 1);
    test.client.close();
    await failed;
  });
});

describe("connections", () => {
  test("are kept and bounded, and watches don't take those of calls", async () => {
    await using server = await startServer(({ response, url }) => {
      if (url.searchParams.has("watch")) response.writeHead(200).flushHeaders();
      else setImmediate(() => sendJson(response, node));
    });
    using test = clientOf(server, { burst: 100 });
    const controller = new AbortController();
    const options = {
      signal: controller.signal,
      resourceVersion: "1",
      timeoutSeconds: 300,
      inactivityMs: 60_000,
    };
    const watches = Array.from({ length: 32 }, () =>
      test.client.watch(nodes, { ...options, onEvent() {} }).catch((error) => error),
    );
    await until("the watches are open", () => server.exchanges.length === 32);
    await expect(test.client.watch(nodes, { ...options, onEvent() {} })).rejects.toMatchObject({
      code: "exhausted",
    });
    await Promise.all(Array.from({ length: 20 }, () => test.client.get(nodes, "n")));
    expect(server.connections).toBe(8 + 32);
    controller.abort(new Error("end"));
    await Promise.all(watches);
  });

  test("that the server closed are not used again by a GET", async () => {
    await using server = await startServer(({ response, request }) => {
      sendJson(response, node);
      response.on("finish", () => setImmediate(() => request.socket.resetAndDestroy()));
    });
    using test = clientOf(server, { burst: 100 });
    for (let round = 0; round < 20; round++) await test.client.get(nodes, "n");
    expect(server.exchanges.length).toBe(20);
  });

  test("carry our user agent", async () => {
    await using server = await startServer(({ response }) => sendJson(response, node));
    using test = clientOf(server, { access: { token: { text: "secret" } } });
    await test.client.get(nodes, "n");
    expect(server.exchanges[0]!.request.headers).toMatchObject({
      "user-agent": "nodekeeper/1.2.3",
      authorization: "Bearer secret",
    });
  });
});

describe("the rate limit", () => {
  test("lets a burst through, makes others wait in turn, and refuses who would wait beyond the deadline", async () => {
    const clock = new FakeClock();
    await using server = await startServer(({ response }) => sendJson(response, node));
    using test = clientOf(server, { clock, qps: 2, burst: 2 });
    const results: number[] = [];
    const calls = [0, 1, 2, 3].map(async (index) => {
      await test.client.get(nodes, "n", { deadlineMs: 5_000 });
      results.push(index);
    });
    await until("the burst is through", () => results.length === 2);
    const refused = test.client.get(nodes, "n", { deadlineMs: 1_000 });
    await expect(refused).rejects.toMatchObject({
      code: "throttled",
      retryAfterMs: 1_500,
      message: /client-side rate limit/,
    });
    await clock.step(500);
    await until("the third is through", () => results.length === 3);
    await clock.step(500);
    await Promise.all(calls);
  });
});

test("a server that sends too many informational responses fails the call and loses the connection", async () => {
  let sent = 0;
  await using server = await startServer(({ request }) => {
    const { socket } = request;
    socket.on("error", () => {});
    const flood = () => {
      while (!socket.destroyed && socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1_000)))
        sent += 28_000;
      socket.once("drain", flood);
    };
    flood();
  });
  using client = clientOf(server);
  await expect(client.client.get(nodes, "n")).rejects.toThrow(/too many informational responses/);
  expect(sent).toBeLessThan(8 * 1024 * 1024);
});
