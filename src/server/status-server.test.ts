import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type ErrorCode,
  errorCodes,
  FakeClock,
  NodekeeperError,
  Registry,
  silentLogger,
  systemClock,
} from "../lib/index.ts";
import { createBaseMetrics, createStatusServer, type JsonRoute, type StatusServerOptions } from "./index.ts";
import { statusOfCode } from "./reply.ts";
import { MAX_CONNECTIONS } from "./status-server.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(options: Partial<StatusServerOptions> = {}) {
  const registry = options.registry ?? new Registry();
  const defaults = {
    address: "127.0.0.1:0",
    checks: [],
    routes: [],
    clock: systemClock,
    logger: silentLogger,
  };
  const server = createStatusServer({ ...defaults, ...options, registry });
  const stop = new AbortController();
  const run = server.run(stop.signal);
  cleanups.push(async () => {
    stop.abort(new Error("the test is over"));
    await run;
  });
  const address = await server.whenListening();
  return { server, stop, run, address, registry, port: Number(address.split(":").at(-1)) };
}

function route(path: string, handle: JsonRoute["handle"]): JsonRoute {
  return { path, summary: `about ${path}`, handle };
}

/** Sends text over a socket of its own, and gives all that comes back until the server closes. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.end(text);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return answer;
}

async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  cleanups.push(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

describe("the JSON API", () => {
  it("answers routes with their query, and lists them", async () => {
    const plugins = route("plugins", (query) => ({ asked: query.get("name") }));
    const { address } = await serve({ routes: [plugins, route("nothing", () => undefined)] });
    const response = await fetch(`http://${address}/api/v1/plugins?name=a%20b`);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual({ asked: "a b" });
    expect(await (await fetch(`http://${address}/api/v1/nothing`)).json()).toBeNull();
    expect(await (await fetch(`http://${address}/api/v1`)).json()).toMatchObject({
      routes: [{ path: "/api/v1/plugins", summary: "about plugins" }, { path: "/api/v1/nothing" }],
    });
    expect(await (await fetch(`http://${address}/`)).text()).toContain("/api/v1/plugins   about plugins");
  });

  it.each(Object.keys(errorCodes) as ErrorCode[])("maps the error %s to its status", async (code) => {
    const fail = route("fail", () => {
      throw new NodekeeperError(code, "what and where", { retryAfterMs: 1_500 });
    });
    const { address } = await serve({ routes: [fail] });
    const response = await fetch(`http://${address}/api/v1/fail`);
    expect(response.status).toBe(statusOfCode[code]);
    expect(response.headers.get("retry-after")).toBe("2");
    expect(await response.json()).toEqual({ error: { code, message: "what and where" } });
  });

  it("answers for a handler whose value is no JSON", async () => {
    const { address } = await serve({ routes: [route("big", () => ({ count: 1n }))] });
    const response = await fetch(`http://${address}/api/v1/big`);
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { code: "internal" } });
  });

  it("gives a handler ten seconds, and tells it to stop", async () => {
    const clock = new FakeClock();
    let told: AbortSignal | undefined;
    const hang = route("hang", (_, signal) => {
      told = signal;
      return new Promise(() => {});
    });
    const { address } = await serve({ routes: [hang], clock });
    const answer = fetch(`http://${address}/api/v1/hang`);
    await vi.waitFor(() => expect(told).toBeDefined(), { interval: 5 });
    await clock.step(9_999);
    expect(told?.aborted).toBe(false);
    await clock.step(1);
    expect((await answer).status).toBe(504);
    expect(told?.reason).toMatchObject({ code: "deadline" });
  });

  it("tells a handler when its client has gone", async () => {
    let told: AbortSignal | undefined;
    const hang = route("hang", (_, signal) => {
      told = signal;
      return new Promise(() => {});
    });
    const { address } = await serve({ routes: [hang] });
    const client = new AbortController();
    const answer = fetch(`http://${address}/api/v1/hang`, { signal: client.signal });
    await vi.waitFor(() => expect(told).toBeDefined(), { interval: 5 });
    client.abort();
    await expect(answer).rejects.toThrow();
    await vi.waitFor(() => expect(told?.reason).toMatchObject({ code: "stopped" }), { interval: 5 });
  });

  it.each([["Upper"], ["/slash"], ["a//b"], ["a b"]])("refuses the route path %j", (path) => {
    const routes = [route(path, () => 1)];
    const registry = new Registry();
    const options = { address: "127.0.0.1:0", checks: [], clock: systemClock, logger: silentLogger };
    expect(() => createStatusServer({ ...options, routes, registry })).toThrow(JSON.stringify(path));
  });
});

describe("requests", () => {
  it.each(["POST", "PUT", "DELETE", "PATCH"])("%s is not served", async (method) => {
    const { address } = await serve();
    const response = await fetch(`http://${address}/livez`, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("GET, HEAD");
  });

  it("HEAD has the headers of GET and no body", async () => {
    const { address } = await serve();
    const response = await fetch(`http://${address}/livez`, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-length")).toBe("2");
    expect(await response.text()).toBe("");
  });

  it("for another name are refused, so that web pages can't read it by DNS rebinding", async () => {
    const { port } = await serve();
    const refused = await raw(
      port,
      "GET /api/v1 HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n",
    );
    expect(refused).toMatch(/^HTTP\/1\.1 403/);
    expect(refused).toContain("evil.example.com");
    const served = await raw(
      port,
      `GET /livez HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`,
    );
    expect(served).toMatch(/^HTTP\/1\.1 200/);
  });

  it.each([
    "//evil/livez",
    "/%zz",
    "/..%2f..%2fetc",
    "*",
    "/livez/../../x",
    "/api/v1/__proto__",
    "/readyz/constructor",
  ])("for %s are answered with an error", async (path) => {
    const { port } = await serve();
    const answer = await raw(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 40[04]/);
  });

  it("with a body can't smuggle another request", async () => {
    const { port } = await serve();
    const body = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const head = `GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
    const answer = await raw(port, head + body);
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it("with huge headers are refused", async () => {
    const { port } = await serve();
    const answer = await raw(port, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431/);
  });
});

it("closes connections beyond the most it takes, and goes on for the others", async () => {
  const { port, registry } = await serve();
  const sockets = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => openSocket(port)));
  const extra = await openSocket(port);
  await once(extra.resume(), "close");
  expect(await registry.metrics()).toContain("nodekeeper_server_refused_connections_total 1");
  sockets[0]!.end("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  expect(String((await once(sockets[0]!, "data"))[0])).toMatch(/^HTTP\/1\.1 200/);
});

describe("stopping", () => {
  it("takes under a second with kept-alive, silent and half-sent connections and a hanging handler", async () => {
    const hang = route("hang", () => new Promise(() => {}));
    const { port, stop, run, server } = await serve({ routes: [hang] });
    const agent = new Agent({ keepAlive: true });
    cleanups.push(() => agent.destroy());
    const [first] = await once(request({ agent, port, host: "127.0.0.1", path: "/livez" }).end(), "response");
    await once(first.resume(), "end");
    await openSocket(port);
    (await openSocket(port)).write("GET /livez HTTP/1.1\r\nHost: local");
    const hanging = await openSocket(port);
    hanging.write("GET /api/v1/hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const begin = performance.now();
    stop.abort(new Error("enough"));
    await run;
    expect(performance.now() - begin).toBeLessThan(1_000);
    expect(server.address).toBeUndefined();
  });

  it("before it began binds nothing", async () => {
    const options = {
      address: "127.0.0.1:0",
      checks: [],
      routes: [],
      clock: systemClock,
      logger: silentLogger,
    };
    const server = createStatusServer({ ...options, registry: new Registry() });
    await server.run(AbortSignal.abort(new Error("never mind")));
    await expect(server.whenListening()).rejects.toThrow("never mind");
  });
});

it("names the address that another process listens on", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  cleanups.push(() => void other.close());
  const { port } = other.address() as { port: number };
  const address = `127.0.0.1:${port}`;
  const options = { address, checks: [], routes: [], clock: systemClock, logger: silentLogger };
  const run = createStatusServer({ ...options, registry: new Registry() }).run(new AbortController().signal);
  await expect(run).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining(address) });
});

describe("metrics", () => {
  it("are served with what the process costs", async () => {
    const registry = new Registry();
    createBaseMetrics(registry, "1.2.3");
    const { address } = await serve({ registry });
    const response = await fetch(`http://${address}/metrics`);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    expect(text).toContain(`nodekeeper_build_info{version="1.2.3",node_version="${process.version}"} 1`);
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    expect(value("process_cpu_seconds_total")).toBeGreaterThan(0);
    expect(value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
    expect(value("process_open_fds")).toBeGreaterThan(2);
    expect(value("nodekeeper_event_loop_busy_seconds_total")).toBeGreaterThan(0);
    expect(value("nodejs_eventloop_lag_seconds")).toBeGreaterThan(0);
  });

  it("never have a client's path as a label", async () => {
    const { address, registry } = await serve();
    for (let at = 0; at < 20; at++) await fetch(`http://${address}/made-up-${at}`);
    const text = await registry.metrics();
    expect(text).toContain('nodekeeper_server_requests_total{handler="other",code="404"} 20');
    expect(text).not.toContain("made-up");
  });
});
