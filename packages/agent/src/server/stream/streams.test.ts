import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { FakeClock, type Logger, NodekeeperError, Registry, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { StatusServer, Streams } from "../index.ts";
import { sendStream } from "../send-stream.ts";

// More than the kernel's buffers of a connection take.
const LARGE = "x".repeat(32 * 1024 * 1024);

const none = { rounds: undefined, marks: undefined };

let clock: FakeClock;
let streams: Streams;
let registry: Registry;
/** Marks that can't be read. */
let broken: { lastId: number; after(): Promise<never> };
let warnings: unknown[];
let reads: Record<string, number>;
let port: number;
let end: () => Promise<void>;
const sockets: Socket[] = [];

beforeEach(async () => {
  clock = new FakeClock();
  registry = new Registry();
  reads = { hanging: 0, small: 0, large: 0 };
  const state = (path: string, value: string) => ({
    path,
    handle: () => ({ value, reads: ++reads[path]! }),
  });
  const hanging = {
    path: "hanging",
    handle: () => {
      reads.hanging!++;
      return new Promise<never>(() => {});
    },
  };
  const states = [hanging, state("small", ""), state("large", LARGE)];
  broken = {
    lastId: 0,
    after: () => Promise.reject(new NodekeeperError("corrupt", "the database is damaged")),
  };
  const numbered = { ...none, marks: broken };
  streams = new Streams({ states, events: undefined, numbered, clock });
  warnings = [];
  const log = { ...silentLogger, warn: (fields: unknown) => void warnings.push(fields) } as Logger;
  const served = { checks: [], routes: [], streams };
  const server = new StatusServer({ context: { clock, registry, log }, served, address: "127.0.0.1:0" });
  const stop = new AbortController();
  const running = server.run(stop.signal);
  port = Number((await server.ready()).split(":").at(-1));
  end = async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    stop.abort(new Error("the test is over"));
    await clock.step(1_000);
    await running;
  };
});

afterEach(() => end());

/** A client on a socket of its own. `read`: whether it reads what it is sent. */
async function open(topics: string, read: boolean): Promise<() => string> {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  let text = "";
  if (read)
    socket.on("data", (chunk) => {
      text += chunk;
    });
  await once(socket, "connect");
  socket.write(`GET /api/v1/stream?topics=${topics} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const before = streams.count;
  await until("it is open", () => streams.count > before || text.includes("event: open"));
  return () => text;
}

/** Waits for a condition while time moves on, by default half a second at a time. */
const untilLater = (what: string, condition: () => boolean | Promise<boolean>, stepMs = 500) =>
  until(what, async () => {
    await clock.step(stepMs);
    return condition();
  });

const cut = async () =>
  (await registry.getSingleMetric("nodekeeper_server_streams_cut_total")!.get()).values[0]?.value;

it("reads nothing while no stream is open, and once for all that are", async () => {
  await clock.step(10_000);
  expect(reads).toEqual({ hanging: 0, small: 0, large: 0 });
  const texts = [await open("small", true), await open("small", true)];
  for (const text of texts) await until("the first answer", () => text().includes('"reads":1}'));
  expect(reads).toEqual({ hanging: 0, small: 1, large: 0 });
  for (const text of texts) await untilLater("the next answer", () => text().includes('"reads":2}'));
  for (const socket of sockets.splice(0)) socket.destroy();
  await until("they have ended", () => streams.count === 0);
  const { small } = reads;
  await clock.step(10_000);
  expect(reads.small).toBe(small);
});

it("sends a client that reads again the answer of then, and none in between", async () => {
  await open("large", false);
  const [socket] = sockets;
  await until("it is read", () => reads.large === 1);
  const text = await open("small", true);
  await untilLater("another stream continues", () => text().includes('"reads":4}'));
  expect(reads.large).toBe(1);
  let last = "";
  socket!.on("data", (chunk) => {
    last = (last + chunk).slice(-100);
  });
  await until("it has read the first answer", () => last.includes('"reads":1}'));
  await untilLater("it is read again", () => reads.large === 2);
  await until("the client has it", () => last.includes('"reads":2}'));
  expect(await cut()).toBe(0);
});

it("cuts off a client that reads nothing for 20 s, and no other", async () => {
  await open("large", false);
  await until("it is read", () => reads.large === 1);
  const text = await open("small", true);
  await untilLater("the first is cut off", async () => (await cut()) === 1);
  await until("it has ended", () => streams.count === 1);
  const seen = text().length;
  await untilLater("the other continues", () => text().length > seen);
});

it("asks once a minute whether a client may still read, and ends the stream of one that may not", async () => {
  const stop = new AbortController();
  let checks = 0;
  let isAllowed = true;
  const checkAccess = async () => {
    checks++;
    if (!isAllowed) throw new NodekeeperError("forbidden", "revoked");
  };
  const ended: unknown[] = [];
  const onError = (error: unknown) => void ended.push(error);
  const options = { clock, signal: stop.signal, headers: {}, checkAccess, onCut: () => {}, onError };
  const server = createServer((_, response) => {
    void sendStream(response, streams.open(new URLSearchParams("topics=small"), undefined), options);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {}).resume();
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const startedAt = clock.monotonic();
  await untilLater("it was checked twice", () => checks >= 2, 10_000);
  expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(120_000);
  expect(streams.count).toBe(1);
  isAllowed = false;
  await untilLater("it has ended", () => streams.count === 0, 10_000);
  expect(ended).toMatchObject([{ code: "forbidden", message: "revoked" }]);
  server.close();
  server.closeAllConnections();
});

it("keeps a stream without news alive by comments", async () => {
  const quiet = new Streams({ states: [], events: undefined, numbered: none, clock });
  const stream = quiet.open(new URLSearchParams(), undefined);
  const stop = new AbortController();
  const pieces = stream.pieces(stop.signal);
  expect((await pieces.next()).value).toMatch(
    /^retry: 2000\nevent: open\nid: -\.-\.-\ndata: {"topics":\[\]}\n\n$/,
  );
  const next = pieces.next();
  for (let at = 0; at < 22; at++) await clock.step(500);
  expect((await next).value).toBe("event: heartbeat\ndata: {}\n\n");
  stop.abort();
  await pieces.next();
  stream.close();
  expect(quiet.count).toBe(0);
});

it("gives up an answer that hangs, asked once for all streams, and sends the others", async () => {
  const texts = [await open("hanging,small", true), await open("hanging,small", true)];
  await until("both wait for it", () => reads.hanging === 1);
  for (const text of texts) await untilLater("another answer", () => text().includes('"reads":'), 1_000);
});

it("reads a round once for all streams that continue from the same one", async () => {
  const asked: number[] = [];
  const rounds = {
    lastId: 7,
    async after(id: number) {
      asked.push(id);
      return [{ id: 8 }];
    },
  };
  const numbered = { ...none, rounds };
  const shared = new Streams({ states: [], events: undefined, numbered, clock });
  const stop = new AbortController();
  const texts = await Promise.all(
    [1, 2, 3].map(async () => {
      const stream = shared.open(new URLSearchParams("topics=rounds"), undefined);
      const pieces = stream.pieces(stop.signal);
      await pieces.next();
      return { stream, next: pieces.next() };
    }),
  );
  expect(asked).toEqual([]);
  rounds.lastId = 8;
  await clock.step(500);
  for (const { next } of texts) expect((await next).value).toContain('data: {"id":8}');
  expect(asked).toEqual([7]);
  stop.abort();
  for (const { stream } of texts) stream.close();
});

it("leaves out topics whose part is off, and refuses those that no agent has", () => {
  expect(() => streams.open(new URLSearchParams({ topics: "small,pods" }), undefined)).toThrow(
    'no topic "pods"; there are: ',
  );
  const stream = streams.open(new URLSearchParams({ topics: "rounds,small,claims" }), undefined);
  const first = stream.pieces(AbortSignal.timeout(60_000)).next();
  stream.close();
  return expect(first).resolves.toMatchObject({ value: expect.stringContaining('{"topics":["small"]}') });
});

it("logs the error that ends a stream", async () => {
  await open("marks", true);
  broken.lastId = 1;
  await untilLater("it has ended", () => streams.count === 0);
  expect(warnings).toMatchObject([{ err: { code: "corrupt", message: "the database is damaged" } }]);
});

it("sends the rounds of a state directory that was replaced, which count from 1 again, from the first on", async () => {
  const rounds = { lastId: 0, after: async (id: number) => (id === 0 ? [{ id: 1 }] : []) };
  const replaced = new Streams({ states: [], events: undefined, numbered: { ...none, rounds }, clock });
  const stop = new AbortController();
  const stream = replaced.open(new URLSearchParams("topics=rounds"), "-.1.-");
  const pieces = stream.pieces(stop.signal);
  await pieces.next();
  const next = pieces.next();
  // It is as old as the client's position only at a later look.
  await clock.step(500);
  rounds.lastId = 1;
  await clock.step(500);
  expect((await next).value).toContain('data: {"id":1}');
  stop.abort();
  await pieces.next();
  stream.close();
});

it("sends a round that comes while one before it turns out to be unreadable", async () => {
  const reading = Promise.withResolvers<void>();
  const rounds = {
    lastId: 0,
    async after() {
      if (rounds.lastId > 1) return [{ id: 2 }];
      await reading.promise;
      return [];
    },
  };
  const following = new Streams({ states: [], events: undefined, numbered: { ...none, rounds }, clock });
  const stop = new AbortController();
  const stream = following.open(new URLSearchParams("topics=rounds"), undefined);
  const pieces = stream.pieces(stop.signal);
  await pieces.next();
  const next = pieces.next();
  rounds.lastId = 1;
  await clock.step(500);
  rounds.lastId = 2;
  reading.resolve();
  await clock.step(10_000);
  expect((await next).value).toContain('data: {"id":2}');
  stop.abort();
  await pieces.next();
  stream.close();
});
