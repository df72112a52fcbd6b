import { once } from "node:events";
import { request } from "node:http";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { PageServer } from "./page-server.ts";

const update = { epoch: 1, version: 1, nodes: [] };
let server: PageServer;
let address: URL;
beforeEach(async () => {
  const files = async (name: string) => (name === "fleet.html" ? Buffer.from("<html>") : undefined);
  server = new PageServer(files, {
    fleet: () => update,
    nodePage: async (node) => `http://127.0.0.1:1/${node}/`,
    pods: async () => ({ items: [], searched: 0, hasMore: false }),
    explainPod: async (pod, node) => ({ text: `${pod} ${node}` }),
    explainNode: async (node) => ({ text: `node ${node}` }),
    details: () => Promise.reject(new NodekeeperError("notFound", "there is no such node")),
  });
  address = new URL(await server.start(0));
});
afterEach(() => server.stop());

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

async function send(path: string, { method = "GET", headers = {}, body = "" }: Sent = {}) {
  const call = request({ host: address.hostname, port: address.port, path, method, headers }).end(body);
  const [response] = await once(call, "response");
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += piece;
  return { status: response.statusCode as number, headers: response.headers, text };
}

const token = () => address.hash.replace("#token=", "");
async function session(): Promise<string> {
  return JSON.parse((await send("/session", { method: "POST", body: token() })).text).path;
}

it("listens on the loopback address alone, and has the token where browsers do not send it", () => {
  expect(address.hostname).toBe("127.0.0.1");
  expect(address.pathname).toBe("/");
  expect(token()).toMatch(/^[\w-]{43}$/);
});

it("exchanges the token once for a path, below which the page and its data are", async () => {
  const path = await session();
  expect(path).toMatch(/^\/[\w-]{43}\/$/);
  expect((await send(path)).text).toBe("<html>");
  expect(JSON.parse((await send(`${path}fleet`)).text)).toEqual(update);
  expect((await send("/session", { method: "POST", body: token() })).status).toBe(401);
});

it("has only the page's files for those who do not know the path", async () => {
  expect((await send("/")).text).toBe("<html>");
  for (const path of ["/fleet", "//fleet", "/x/fleet", `/${token()}/fleet`, "/session"])
    expect([path, (await send(path)).status]).toEqual([path, 404]);
  for (const body of ["", "x", `${token()}x`, token().slice(1)])
    expect((await send("/session", { method: "POST", body })).status).toBe(401);
  // None of them has used the token up.
  expect(await session()).toMatch(/^\//);
});

it("leads to the page of a node, which is on another port", async () => {
  const path = await session();
  const { status, headers } = await send(`${path}nodes/worker-1/`);
  expect([status, headers.location]).toEqual([303, "http://127.0.0.1:1/worker-1/"]);
  expect((await send("/nodes/worker-1/")).status).toBe(404);
});

it("passes the page's questions on, and an error with its status", async () => {
  const path = await session();
  expect((await send(`${path}explain?pod=default%2Fweb&node=n1`)).text).toContain("default/web n1");
  expect((await send(`${path}explain?pod=default%2Fweb&node=`)).text).toContain("default/web undefined");
  expect((await send(`${path}explain?node=n1`)).text).toContain("node n1");
  expect((await send(`${path}explain`)).status).toBe(400);
  expect((await send(`${path}details?node=n9`)).status).toBe(404);
});

it("refuses a token that is too long", async () => {
  expect((await send("/session", { method: "POST", body: "x".repeat(10_000) })).status).toBe(413);
});

it.each<[string, Sent, number]>([
  ["a page of another origin", { headers: { origin: "http://evil.example" } }, 403],
  ["a page of another port", { headers: { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" } }, 403],
  ["a name that was pointed at this address", { headers: { host: "evil.example:80" } }, 403],
  ["a method that changes something", { method: "DELETE" }, 405],
])("refuses %s, even with the path", async (_, sent, status) => {
  const path = await session();
  expect((await send(`${path}fleet`, sent)).status).toBe(status);
});

it("is not embedded, not stored, and tells no other site its address", async () => {
  const { headers } = await send(await session());
  expect(headers).toMatchObject({
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": expect.stringContaining("frame-ancestors 'none'"),
  });
  expect(headers).not.toHaveProperty("set-cookie");
});
