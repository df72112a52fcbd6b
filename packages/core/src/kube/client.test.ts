import { until } from "@nodekeeper/testing/until";
import { describe, expect, test } from "vitest";
import { FakeClock, parseWithBigInts } from "../lib/index.ts";
import {
  clientOf,
  type Exchange,
  nodes,
  pods,
  sendJson,
  sendStatus,
  startServer,
} from "./testing/test-server.ts";

const echo = ({ response }: Exchange) => sendJson(response, { metadata: { name: "n" } });

describe("calls", () => {
  test("are written as the API has them", async () => {
    await using server = await startServer(echo);
    using test = clientOf(server, { fieldManager: "us" });
    const { client } = test;
    const pod = { metadata: { name: "p", namespace: "ns" } };
    await client.get(pods, "p", { namespace: "ns" });
    await client.create(pods, pod);
    await client.create(
      pods,
      { ...pod, apiVersion: "policy/v1", kind: "Eviction" },
      { subresource: "eviction" },
    );
    await client.update(nodes, { metadata: { name: "n", resourceVersion: "4" } }, { subresource: "status" });
    await client.apply(nodes, { metadata: { name: "n" }, a: 1 }, { force: true });
    await client.mergePatch(nodes, "n", { a: null });
    await client.delete(pods, "p", { namespace: "ns", preconditions: { uid: "u" }, gracePeriodSeconds: 0 });
    const typedPod = { apiVersion: "v1", kind: "Pod" };
    const seen = server.exchanges.map(({ request, url, body }) => [
      `${request.method} ${url.pathname}${url.search}`,
      request.headers["content-type"],
      body === "" ? undefined : JSON.parse(body),
    ]);
    expect(seen).toEqual([
      ["GET /api/v1/namespaces/ns/pods/p", undefined, undefined],
      ["POST /api/v1/namespaces/ns/pods?fieldManager=us", "application/json", { ...pod, ...typedPod }],
      [
        "POST /api/v1/namespaces/ns/pods/p/eviction?fieldManager=us",
        "application/json",
        { ...pod, apiVersion: "policy/v1", kind: "Eviction" },
      ],
      [
        "PUT /api/v1/nodes/n/status?fieldManager=us",
        "application/json",
        { apiVersion: "v1", kind: "Node", metadata: { name: "n", resourceVersion: "4" } },
      ],
      [
        "PATCH /api/v1/nodes/n?fieldManager=us&force=true",
        "application/apply-patch+yaml",
        { apiVersion: "v1", kind: "Node", metadata: { name: "n" }, a: 1 },
      ],
      ["PATCH /api/v1/nodes/n?fieldManager=us", "application/merge-patch+json", { a: null }],
      [
        "DELETE /api/v1/namespaces/ns/pods/p",
        "application/json",
        { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid: "u" }, gracePeriodSeconds: 0 },
      ],
    ]);
  });

  test("keep the path a gateway puts in front", async () => {
    await using server = await startServer(echo);
    using test = clientOf({ url: new URL("/clusters/one/", server.url) });
    await test.client.get(nodes, "n");
    expect(server.exchanges[0]!.url.pathname).toBe("/clusters/one/api/v1/nodes/n");
  });

  test.each(["", ".", "..", "a/b", "a%2fb", "x".repeat(254)])(
    "refuse the name %j without asking",
    async (name) => {
      await using server = await startServer(echo);
      using test = clientOf(server);
      await expect(test.client.get(nodes, name)).rejects.toMatchObject({ code: "invalid" });
      expect(server.exchanges).toHaveLength(0);
    },
  );

  test("refuse a missing namespace", async () => {
    await using server = await startServer(echo);
    using test = clientOf(server);
    await expect(test.client.apply(pods, { metadata: { name: "p" } })).rejects.toThrow(
      /namespace is required/,
    );
    await expect(test.client.create(pods, { metadata: { name: "p" } })).rejects.toThrow(
      /namespace is required/,
    );
  });
});

describe("a list", () => {
  test("is parsed as the caller asks", async () => {
    const items =
      '[{"metadata":{"name":"n"},"spec":{"large":-9007199254740993,"small":7,"half":9007199254740993.5,"text":"9007199254740993"}}]';
    await using server = await startServer(({ response }) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"metadata":{},"items":${items}}`);
    });
    using test = clientOf(server);
    const spec = { small: 7, half: 9007199254740994, text: "9007199254740993" };
    const exact = await test.client.list(nodes, { parse: parseWithBigInts });
    expect(exact.items).toMatchObject([{ spec: { ...spec, large: -9007199254740993n } }]);
    const nearest = await test.client.list(nodes);
    expect(nearest.items).toMatchObject([{ spec: { ...spec, large: -9007199254740992 } }]);
  });

  const named = (...names: string[]) => names.map((name) => ({ metadata: { name } }));

  test("is read page by page, and from the start when its next page has expired", async () => {
    let expired = false;
    await using server = await startServer(({ response, url }) => {
      const next = url.searchParams.get("continue");
      if (!next)
        sendJson(response, { metadata: { resourceVersion: "7", continue: "page2" }, items: named("a") });
      else if (!expired) {
        expired = true;
        sendStatus(response, 410, "expired");
      } else sendJson(response, { metadata: { resourceVersion: "7" }, items: named("b", "c") });
    });
    using test = clientOf(server);
    const list = await test.client.list(nodes, { fieldSelector: "metadata.name=x", resourceVersion: "0" });
    expect(list.items.map(({ metadata, kind }) => `${kind} ${metadata.name}`)).toEqual([
      "Node a",
      "Node b",
      "Node c",
    ]);
    expect(list.resourceVersion).toBe("7");
    expect(server.exchanges.map(({ url }) => url.search)).toEqual([
      "?fieldSelector=metadata.name%3Dx&limit=500&resourceVersion=0",
      "?fieldSelector=metadata.name%3Dx&limit=500&continue=page2",
      "?fieldSelector=metadata.name%3Dx&limit=500&resourceVersion=0",
      "?fieldSelector=metadata.name%3Dx&limit=500&continue=page2",
    ]);
  });

  test("of any size is visited page by page", async () => {
    // 66 MiB in all, which list() refuses.
    const padding = "x".repeat(22 * 1024 * 1024);
    const pages = ["", "page2", "page3"];
    await using server = await startServer(({ response, url }) => {
      const at = pages.indexOf(url.searchParams.get("continue") ?? "");
      const [item] = named(`node-${at}`);
      sendJson(response, { metadata: { continue: pages[at + 1] }, items: [{ ...item, padding }] });
    });
    using test = clientOf(server);
    const seen: (string | undefined)[] = [];
    await test.client.visit(nodes, ({ metadata }) => seen.push(metadata.name), { pageSize: 1 });
    expect(seen).toEqual(["node-0", "node-1", "node-2"]);
    expect(server.exchanges.map(({ url }) => url.searchParams.get("limit"))).toEqual(["1", "1", "1"]);
    await expect(test.client.list(nodes, { pageSize: 1 })).rejects.toMatchObject({ code: "exhausted" });
  });

  test("without an end is refused", async () => {
    await using server = await startServer(({ response, url }) => {
      const page = Number(url.searchParams.get("continue") ?? 0) + 1;
      sendJson(response, { metadata: { continue: String(page) }, items: [] });
    });
    using test = clientOf(server, { qps: 10_000, burst: 10_000 });
    await expect(test.client.visit(nodes, () => {})).rejects.toMatchObject({ code: "exhausted" });
    expect(server.exchanges).toHaveLength(1_000);
  });

  test.each([
    ["expires each time", () => 410, "expired"],
    ["repeats a page", () => 200, "unavailable"],
  ])("that %s ends with %s", async (_, status, code) => {
    await using server = await startServer(({ response }) => {
      if (status() === 410) sendStatus(response, 410, "expired");
      else sendJson(response, { metadata: { continue: "again" }, items: [] });
    });
    using test = clientOf(server);
    await expect(test.client.list(nodes)).rejects.toMatchObject({ code });
    expect(server.exchanges.length).toBeLessThan(6);
  });

  test.each([
    ["null items", { metadata: {}, items: null }, 0],
    ["no list", { metadata: {}, items: "x" }, undefined],
    ["an item that is none", { metadata: {}, items: [5] }, undefined],
    ["no object", [], undefined],
  ])("of %s is understood or refused", async (_, answer, length) => {
    await using server = await startServer(({ response }) => sendJson(response, answer));
    using test = clientOf(server);
    const listed = await test.client.list(nodes).catch((error) => error);
    if (length === undefined) expect(listed.code).toBe("unavailable");
    else expect(listed.items).toHaveLength(length);
  });
});

describe("discovery", () => {
  const widget = { group: "example.com", version: "v1", kind: "Widget" };
  const resources = [
    { name: "widgets", kind: "Widget", namespaced: true, verbs: ["get", "list"] },
    { name: "widgets/status", kind: "Widget" },
    { name: 5, kind: "Wrong" },
  ];

  test("is asked once for each group and version, shared by those who ask together", async () => {
    await using server = await startServer(({ response }) => sendJson(response, { resources }));
    using test = clientOf(server);
    const [first] = await Promise.all([test.client.resolve(widget), test.client.resolve(widget)]);
    expect(first).toEqual({
      ...widget,
      plural: "widgets",
      namespaced: true,
    });
    await test.client.resolve(widget);
    expect(server.exchanges.map(({ url }) => url.pathname)).toEqual(["/apis/example.com/v1"]);
    test.client.forgetDiscovery();
    await test.client.resolve(widget);
    expect(server.exchanges).toHaveLength(2);
  });

  test("asks again for an unknown kind, but not at once", async () => {
    const clock = new FakeClock();
    await using server = await startServer(({ response }) => {
      response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found");
    });
    using test = clientOf(server, { clock });
    expect(await test.client.resolve(widget)).toBeUndefined();
    await clock.step(9_999);
    expect(await test.client.resolve(widget)).toBeUndefined();
    expect(server.exchanges).toHaveLength(1);
    server.handler = ({ response }) => sendJson(response, { resources });
    await clock.step(1);
    expect(await test.client.resolve(widget)).toMatchObject({ plural: "widgets" });
  });

  test("one impatient caller leaves, the others are served", async () => {
    await using server = await startServer(() => {});
    using test = clientOf(server);
    const controller = new AbortController();
    const impatient = test.client.resolve(widget, { signal: controller.signal });
    const patient = test.client.resolve(widget);
    await until("the request came", () => server.exchanges.length === 1);
    controller.abort(new Error("no time"));
    await expect(impatient).rejects.toThrow("no time");
    sendJson(server.exchanges[0]!.response, { resources });
    expect(await patient).toMatchObject({ plural: "widgets" });
  });

  test("failures are returned, not kept; earlier knowledge serves while the server is unavailable", async () => {
    const clock = new FakeClock();
    await using server = await startServer(({ response }) => sendStatus(response, 503, "starting"));
    using test = clientOf(server, { clock });
    await expect(test.client.resolve(widget)).rejects.toMatchObject({ code: "unavailable" });
    server.handler = ({ response }) => sendJson(response, { resources });
    await test.client.resolve(widget);
    server.handler = ({ response }) => sendStatus(response, 503, "away");
    await clock.step(600_001);
    expect(await test.client.resolve(widget)).toMatchObject({ plural: "widgets" });
    expect(server.exchanges).toHaveLength(3);
  });
});

test("preflight questions", async () => {
  await using server = await startServer(({ response, url, body }) => {
    const answers: Record<string, unknown> = {
      "/version": { gitVersion: "v1.34.1", major: "1", minor: "34", platform: "linux/amd64" },
    };
    if (!body) sendJson(response, answers[url.pathname]);
    else {
      const { verb } = JSON.parse(body).spec.resourceAttributes;
      sendJson(response, { status: { allowed: verb === "get", reason: "RBAC" } }, 201);
    }
  });
  using test = clientOf(server);
  expect(await test.client.serverVersion()).toMatchObject({ gitVersion: "v1.34.1", minor: "34" });
  const question = { group: "", resource: "nodes" };
  expect(await test.client.reviewAccess({ ...question, verb: "get" })).toEqual({
    allowed: true,
    reason: "RBAC",
  });
  expect(await test.client.reviewAccess({ ...question, verb: "patch" })).toMatchObject({ allowed: false });
});
