import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Forward } from "../kubectl.ts";
import { NodePages } from "./node-pages.ts";

interface Given {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
}

let agent: Server;
let given: Given[];
let clock: FakeClock;
let pages: NodePages;
let forwards: { node: string; isOpen: boolean }[];
let problem: Error | undefined;

beforeEach(async () => {
  given = [];
  forwards = [];
  problem = undefined;
  agent = createServer(({ method, url, headers }, response) => {
    given.push({ method, url, headers });
    response.setHeader("Set-Cookie", "a=b");
    response.setHeader("Location", "http://evil.example/");
    response.setHeader("Service-Worker-Allowed", "/");
    response.setHeader("Content-Security-Policy", "default-src 'self'");
    response.writeHead(url === "/missing" ? 404 : 200, { "Content-Type": "text/event-stream" });
    response.write(`from ${url}`);
    if (url !== "/stream") response.end();
  }).listen(0, "127.0.0.1");
  await once(agent, "listening");
  clock = new FakeClock();
  pages = new NodePages({
    clock,
    async forward(node): Promise<Forward> {
      if (problem) throw problem;
      const forward = { node, isOpen: true };
      forwards.push(forward);
      return {
        address: `127.0.0.1:${(agent.address() as AddressInfo).port}`,
        get isOpen() {
          return forward.isOpen;
        },
        [Symbol.dispose]: () => (forward.isOpen = false),
      };
    },
  });
});
afterEach(() => {
  pages.stop();
  agent.close();
  agent.closeAllConnections();
});

async function begin(address: string, method = "GET", headers: Record<string, string> = {}) {
  const call = request(address, { method, headers, agent: false }).end();
  call.on("error", () => {});
  const [response] = await once(call, "response");
  return { call, response };
}

async function get(address: string, method = "GET", headers: Record<string, string> = {}) {
  const { response } = await begin(address, method, headers);
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += piece;
  return { status: response.statusCode as number, headers: response.headers as IncomingHttpHeaders, text };
}

it("passes requests on to the agent, and its status and body back", async () => {
  const address = await pages.address("n1");
  expect(await pages.address("n1")).toBe(address);
  expect(await get(`${address}api/v1/pods?limit=5`)).toMatchObject({
    status: 200,
    text: "from /api/v1/pods?limit=5",
  });
  expect((await get(`${address}missing`)).status).toBe(404);
  expect((await get(address, "HEAD")).text).toBe("");
  expect(given.map(({ method, url }) => `${method} ${url}`)).toEqual([
    "GET /api/v1/pods?limit=5",
    "GET /missing",
    "HEAD /",
  ]);
  expect(forwards).toHaveLength(1);
});

it("passes on no header that concerns the user or other servers of the machine", async () => {
  const sent = { cookie: "secret=1", authorization: "Bearer x", referer: "http://x/", "last-event-id": "7" };
  const { headers } = await get(await pages.address("n1"), "GET", sent);
  expect(given[0]!.headers).toMatchObject({ "last-event-id": "7" });
  for (const name of ["cookie", "authorization", "referer"])
    expect(given[0]!.headers).not.toHaveProperty(name);
  for (const name of ["set-cookie", "location", "service-worker-allowed"])
    expect(headers).not.toHaveProperty(name);
  expect(headers).toMatchObject({
    "content-type": "text/event-stream",
    "content-security-policy": "default-src 'self'",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
  });
});

it("gives each node an origin and a secret path of its own", async () => {
  const [first, second] = [new URL(await pages.address("n1")), new URL(await pages.address("n2"))];
  expect(first.port).not.toBe(second.port);
  expect(first.pathname).not.toBe(second.pathname);
  for (const path of ["/", "/api/v1/node", second.pathname])
    expect((await get(`${first.origin}${path}`)).status).toBe(404);
  expect(forwards).toEqual([]);
});

it.each<[string, string, Record<string, string>, number]>([
  ["what changes something", "POST", {}, 405],
  ["a page of another origin", "GET", { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }, 403],
  ["another name of this address", "GET", { host: "evil.example" }, 403],
  ["a service worker, which would outlive the page", "GET", { "service-worker": "script" }, 403],
])("refuses %s", async (_, method, headers, status) => {
  expect((await get(await pages.address("n1"), method, headers)).status).toBe(status);
  expect(given).toEqual([]);
});

it("opens another port-forward when the agent's pod was replaced", async () => {
  const address = await pages.address("n1");
  await get(address);
  forwards[0]!.isOpen = false;
  expect((await get(address)).status).toBe(200);
  expect(forwards).toHaveLength(2);
});

it("says why an agent can't be reached, and tries again at the next request", async () => {
  const address = await pages.address("n1");
  problem = new NodekeeperError("unavailable", "pod agent-1 is CrashLoopBackOff");
  const { status, text } = await get(address);
  expect([status, text]).toEqual([503, expect.stringContaining("pod agent-1 is CrashLoopBackOff")]);
  problem = undefined;
  expect((await get(address)).status).toBe(200);
});

it("says so where the agent ends the connection", async () => {
  const address = await pages.address("n1");
  await get(address);
  agent.close();
  agent.closeAllConnections();
  expect(await get(address)).toMatchObject({
    status: 503,
    text: expect.stringContaining("does not respond"),
  });
});

it("requests that arrive together share a port-forward", async () => {
  const address = await pages.address("n1");
  await Promise.all([get(address), get(`${address}a`), get(`${address}b`)]);
  expect(forwards).toHaveLength(1);
});

it("closes the port-forward a minute after the last request, and not while a stream is open", async () => {
  const address = await pages.address("n1");
  const { call } = await begin(`${address}stream`);
  await get(address);
  await clock.step(300_000);
  expect(forwards[0]!.isOpen).toBe(true);
  call.destroy();
  // The end of the connection arrives in its own time.
  await eventually(async () => {
    await clock.step(60_000);
    expect(forwards[0]!.isOpen).toBe(false);
  });
});

it("opens sixteen nodes at most; one that is not used gives way", async () => {
  const streams = [];
  for (let at = 0; at < 16; at++) streams.push(await begin(`${await pages.address(`n${at}`)}stream`));
  const another = await pages.address("another");
  expect(await get(another)).toMatchObject({
    status: 413,
    text: expect.stringContaining("close one of them"),
  });
  streams[3]!.call.destroy();
  await eventually(async () => expect((await get(another)).status).toBe(200));
  expect(forwards.find(({ node }) => node === "n3")!.isOpen).toBe(false);
  for (const { call } of streams) call.destroy();
});
