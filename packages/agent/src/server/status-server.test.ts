import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import {
  type Clock,
  type ErrorCode,
  errorCodes,
  FakeClock,
  NodekeeperError,
  Registry,
  silentLogger,
  systemClock,
} from "@nodekeeper/core/lib";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import { createBaseMetrics, type JsonRoute, StatusServer, type StatusServerOptions } from "./index.ts";
import { statusOfCode } from "./reply.ts";
import { MAX_CONNECTIONS } from "./status-server.ts";
import { MOST_STREAMS, Streams } from "./stream/streams.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Changes extends Partial<Omit<StatusServerOptions, "context" | "served">> {
  routes?: readonly JsonRoute[];
  streams?: Streams;
  registry?: Registry;
  clock?: Clock;
}

async function serve(changes: Changes = {}) {
  const { routes = [], streams, registry = new Registry(), clock = systemClock, ...options } = changes;
  const context = { registry, clock, log: silentLogger };
  const server = new StatusServer({
    address: "127.0.0.1:0",
    ...options,
    context,
    served: { checks: [], routes, ...(streams ? { streams } : {}) },
  });
  const stop = new AbortController();
  const run = server.run(stop.signal);
  cleanups.push(async () => {
    stop.abort(new Error("the test is over"));
    await run;
  });
  const address = await server.ready();
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

  it("gives a handler ten seconds, and aborts its signal then", async () => {
    const clock = new FakeClock();
    let given: AbortSignal | undefined;
    const hang = route("hang", (_, signal) => {
      given = signal;
      return new Promise(() => {});
    });
    const { address } = await serve({ routes: [hang], clock });
    const answer = fetch(`http://${address}/api/v1/hang`);
    await eventually(() => expect(given).toBeDefined());
    await clock.step(9_999);
    expect(given?.aborted).toBe(false);
    await clock.step(1);
    expect((await answer).status).toBe(504);
    expect(given?.reason).toMatchObject({ code: "deadline" });
  });

  it("aborts a handler's signal when its client has disconnected", async () => {
    let given: AbortSignal | undefined;
    const hang = route("hang", (_, signal) => {
      given = signal;
      return new Promise(() => {});
    });
    const { address } = await serve({ routes: [hang] });
    const client = new AbortController();
    const answer = fetch(`http://${address}/api/v1/hang`, { signal: client.signal });
    await eventually(() => expect(given).toBeDefined());
    client.abort();
    await expect(answer).rejects.toThrow();
    await eventually(() => expect(given?.reason).toMatchObject({ code: "stopped" }));
  });

  it.each([["Upper"], ["/slash"], ["a//b"], ["a b"]])("refuses the route path %j", (path) => {
    const routes = [route(path, () => 1)];
    const context = { registry: new Registry(), clock: systemClock, log: silentLogger };
    const options = { context, address: "127.0.0.1:0", served: { checks: [], routes } };
    expect(() => new StatusServer(options)).toThrow(JSON.stringify(path));
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

describe("what a local user can take away", () => {
  const livez = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

  it("is no connection of the kubelet's: idle and half-sent ones make room, the least recently used first", async () => {
    const { port, address, registry } = await serve();
    const used = await openSocket(port);
    const idle = await Promise.all(Array.from({ length: MAX_CONNECTIONS - 1 }, () => openSocket(port)));
    for (const socket of idle.slice(30)) socket.write("GET /livez HTTP/1.1\r\nHost: local");
    used.write(livez);
    await once(used, "data");
    const closed = once(idle[0]!, "close");
    expect((await fetch(`http://${address}/livez`)).status).toBe(200);
    await closed;
    expect(await registry.metrics()).toContain("nodekeeper_server_refused_connections_total 1");
    used.write(livez);
    expect(String((await once(used, "data"))[0])).toMatch(/^HTTP\/1\.1 200/);
  });

  it("is no time of the agent: of 2,000 pipelined requests the first is answered and ends the connection", async () => {
    let calls = 0;
    const { port } = await serve({ routes: [route("pods", () => ++calls)] });
    const one = "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const answer = await raw(port, one.repeat(2_000));
    expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
    expect(answer).toMatch(/^Connection: close/im);
    expect(calls).toBe(1);
  });

  it("is no rendering of metrics more than once a second", async () => {
    const clock = new FakeClock();
    const registry = new Registry();
    let rendered = 0;
    const metrics = registry.metrics.bind(registry);
    registry.metrics = () => {
      rendered++;
      return metrics();
    };
    const { address } = await serve({ registry, clock });
    const scrape = async () => (await fetch(`http://${address}/metrics`)).text();
    await Promise.all(Array.from({ length: 20 }, scrape));
    await clock.step(999);
    await scrape();
    expect(rendered).toBe(1);
    await clock.step(2);
    expect(await scrape()).toContain('handler="/metrics",code="200"} 21');
    expect(rendered).toBe(2);
  });

  it("is no second rendering of metrics while a collector hangs", async () => {
    const clock = new FakeClock();
    const registry = new Registry();
    let renderings = 0;
    registry.metrics = () => {
      renderings++;
      return new Promise(() => {});
    };
    const { address } = await serve({ registry, clock });
    for (let scrape = 0; scrape < 3; scrape++) {
      let status = 0;
      const answered = fetch(`http://${address}/metrics`).then((response) => {
        status = response.status;
      });
      await until("the deadline", () => status === 504, { clock, stepMs: 10_000 });
      await answered;
    }
    expect(renderings).toBe(1);
  });

  it("is no probe: health and metrics answer while handlers hang and more requests wait than are taken", async () => {
    let running = 0;
    const hang = route("hang", () => {
      running++;
      return new Promise(() => {});
    });
    const { port, address } = await serve({ routes: [hang] });
    const sockets = await Promise.all(Array.from({ length: 40 }, () => openSocket(port)));
    const answers: string[] = [];
    for (const socket of sockets) {
      socket.on("data", (chunk) => answers.push(String(chunk)));
      socket.write("GET /api/v1/hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    await eventually(() => expect(answers).toHaveLength(8));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 429[\s\S]*Retry-After: 1\r\n/);
    expect(running).toBe(2);
    expect((await fetch(`http://${address}/livez`)).status).toBe(200);
    expect((await fetch(`http://${address}/metrics`)).status).toBe(200);
  });

  it("is no probe either where all streams are open, other connections ask for metrics, and a collector hangs", async () => {
    const registry = new Registry();
    registry.metrics = () => new Promise(() => {});
    const numbered = { rounds: undefined, marks: undefined };
    const streams = new Streams({ states: [], events: undefined, numbered, clock: systemClock });
    const { port, address } = await serve({ registry, streams });
    for (let stream = 0; stream < MOST_STREAMS; stream++)
      (await openSocket(port)).write("GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await eventually(() => expect(streams.count).toBe(MOST_STREAMS));
    const others = Array.from({ length: MAX_CONNECTIONS - MOST_STREAMS }, () => openSocket(port));
    const sockets = await Promise.all(others);
    const answers: string[] = [];
    for (const socket of sockets) {
      socket.on("data", (chunk) => answers.push(String(chunk)));
      socket.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    await eventually(() => expect(answers).toHaveLength(8));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 429/);
    expect((await fetch(`http://${address}/livez`)).status).toBe(200);
  });
});

describe("stopping", () => {
  it("does not wait for kept-alive, silent and half-sent connections, nor for a hanging handler", async () => {
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
    stop.abort(new Error("enough"));
    await run;
    expect(server.address).toBeUndefined();
  });

  it("before it started binds nothing", async () => {
    const context = { registry: new Registry(), clock: systemClock, log: silentLogger };
    const served = { checks: [], routes: [] };
    const server = new StatusServer({ context, served, address: "127.0.0.1:0" });
    await server.run(AbortSignal.abort(new Error("never mind")));
    await expect(server.ready()).rejects.toThrow("never mind");
  });
});

it("names the address that another process listens on", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  cleanups.push(() => void other.close());
  const { port } = other.address() as { port: number };
  const address = `127.0.0.1:${port}`;
  const context = { registry: new Registry(), clock: systemClock, log: silentLogger };
  const server = new StatusServer({ context, served: { checks: [], routes: [] }, address });
  const run = server.run(new AbortController().signal);
  await expect(run).rejects.toMatchObject({
    code: "conflict",
    id: "NK1701",
    message: expect.stringContaining(address),
  });
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
