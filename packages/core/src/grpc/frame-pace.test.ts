import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { RegistrationDefinition } from "../gen/pluginregistration/v1/api.ts";
import { createLogger, FakeClock, PacedSocket, systemClock } from "../lib/index.ts";
import { FRAMES_AT_ONCE } from "./frame-budget.ts";
import { FRAMES_PER_TURN, FramePace } from "./frame-pace.ts";
import { KeptServer } from "./kept-server.ts";
import { frame } from "./testing/frames.ts";

const tiny = frame(0, 0, 1, Buffer.alloc(1));

let directory: string;
let path: string;
let server: Server;
let accepted: Promise<Socket>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "bounded-"));
  path = join(directory, "s");
  const { promise, resolve } = Promise.withResolvers<Socket>();
  accepted = promise;
  server = createServer((socket) => {
    socket.on("error", () => {});
    resolve(socket);
  });
  await new Promise<void>((listening) => server.listen(path, listening));
});
afterEach(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

function ended(bounded: PacedSocket): Promise<Error | undefined> {
  let failure: Error | undefined;
  bounded.on("error", (error) => (failure = error));
  return new Promise((resolve) => bounded.once("close", () => resolve(failure)));
}

it("passes on all bytes both ways, and ends with its peer", async () => {
  const bounded = new PacedSocket(connect(path), new FramePace());
  const over = ended(bounded);
  const received: Buffer[] = [];
  bounded.on("data", (chunk: Buffer) => received.push(chunk));
  const peer = await accepted;
  const sent = Buffer.concat(Array.from({ length: 300 }, (_, n) => frame(0, 0, n, Buffer.alloc(n * 50, n))));
  const atPeer: Buffer[] = [];
  peer.on("data", (chunk: Buffer) => atPeer.push(chunk));
  bounded.cork();
  for (let n = 0; n < 100; n++) bounded.write(Buffer.alloc(10_000, n));
  bounded.uncork();
  peer.end(sent);
  expect(await over).toBeUndefined();
  expect(Buffer.concat(received).equals(sent)).toBe(true);
  expect(Buffer.concat(atPeer).length).toBe(1_000_000);
});

it("passes on a bounded number of frames in each turn of the event loop", async () => {
  const bounded = new PacedSocket(connect(path), new FramePace(0, new FakeClock()));
  const over = ended(bounded);
  let inTurn = 0;
  let mostInTurn = 0;
  let bytes = 0;
  bounded.on("data", (chunk: Buffer) => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn += chunk.length / tiny.length;
    bytes += chunk.length;
    mostInTurn = Math.max(mostInTurn, inTurn);
  });
  (await accepted).end(Buffer.concat(Array<Buffer>(FRAMES_AT_ONCE).fill(tiny)));
  expect(await over).toBeUndefined();
  expect(bytes).toBe(FRAMES_AT_ONCE * tiny.length);
  // The counters of the turn and of the test are reset in the same phase, in either order.
  expect(mostInTurn).toBeLessThanOrEqual(2 * FRAMES_PER_TURN);
});

it("a peer over its budget loses the connection, with what was sent within it passed on", async () => {
  const bounded = new PacedSocket(connect(path), new FramePace(0, new FakeClock()));
  const over = ended(bounded);
  let bytes = 0;
  bounded.on("data", (chunk: Buffer) => (bytes += chunk.length));
  const peer = await accepted;
  const peerClosed = new Promise<void>((resolve) => peer.once("close", () => resolve()));
  peer.write(Buffer.concat(Array<Buffer>(2 * FRAMES_AT_ONCE).fill(tiny)));
  expect(await over).toMatchObject({ code: "exhausted", id: "NK1320" });
  await peerClosed;
  expect(bytes).toBeLessThanOrEqual(2 * FRAMES_AT_ONCE * tiny.length);
});

it("a connection that fails is reported", async () => {
  const bounded = new PacedSocket(connect(join(directory, "none")), new FramePace());
  expect(await ended(bounded)).toMatchObject({ code: "ENOENT" });
});

it("a client of a kept server that sends tiny frames without end loses its connection, which is logged", async () => {
  // biome-ignore lint/suspicious/noExplicitAny: log lines have any fields
  const lines: any[] = [];
  const kept = new KeptServer({
    path: join(directory, "kept"),
    addServices: (services) =>
      services.add(RegistrationDefinition, {
        getInfo: async () => ({ type: "", name: "", endpoint: "", supportedVersions: [] }),
        notifyRegistrationStatus: async () => ({}),
      }),
    clock: systemClock,
    log: createLogger("info", { write: (line) => lines.push(JSON.parse(line)) }),
  });
  const controller = new AbortController();
  const running = kept.run(controller.signal);
  await kept.ready;
  const client = connect(join(directory, "kept"));
  client.on("error", () => {});
  const closed = new Promise<void>((resolve) => client.once("close", () => resolve()));
  client.resume();
  client.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  client.write(frame(4, 0, 0, Buffer.alloc(0)));
  // A WINDOW_UPDATE by one byte, which is legal at any time.
  const update = frame(8, 0, 0, Buffer.from([0, 0, 0, 1]));
  const chunk = Buffer.concat(Array<Buffer>(1_000).fill(update));
  const send = () => {
    while (!client.destroyed && client.write(chunk));
  };
  client.on("drain", send);
  send();
  await closed;
  expect(lines).toContainEqual(
    expect.objectContaining({ errorId: "NK1320", msg: "connection of a client closed" }),
  );
  controller.abort();
  await running;
});
