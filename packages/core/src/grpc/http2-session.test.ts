import { mkdtempSync, rmSync } from "node:fs";
import { type ClientHttp2Session, constants } from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FRAMES_AT_ONCE } from "./frame-budget.ts";
import { FRAMES_PER_TURN } from "./frame-pace.ts";
import { openHttp2Session } from "./http2-session.ts";
import { READ_BYTES } from "./sampled-frames.ts";
import { frame } from "./testing/frames.ts";

const [DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, ORIGIN] = [0, 1, 3, 4, 8, 12] as const;
const ACK = 1;
const END_HEADERS = 4;
const STREAM = 1;
const none = Buffer.alloc(0);
// ":status: 200" by its index in the static table: RFC 7541, appendix A.
const ok = frame(HEADERS, END_HEADERS, STREAM, Buffer.from([0x88]));
const tiny = frame(DATA, 0, STREAM, Buffer.alloc(1));

let directory: string;
let server: Server;
let peer: Promise<Socket>;
let session: ClientHttp2Session;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkh2-"));
  const { promise, resolve } = Promise.withResolvers<Socket>();
  peer = promise;
  server = createServer((socket) => {
    socket.on("error", () => {});
    socket.resume();
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0, none), frame(SETTINGS, ACK, 0, none)]));
    resolve(socket);
  });
  const path = join(directory, "s");
  await new Promise<void>((listening) => server.listen(path, listening));
  session = openHttp2Session(path);
});
afterEach(() => {
  session.destroy();
  server.close();
  rmSync(directory, { recursive: true });
});

function request() {
  const stream = session.request({ ":method": "POST", ":path": "/a.B/C" });
  stream.on("error", () => {});
  return stream;
}

/** Resolves with the error of the session when it closes. */
function closed(): Promise<Error | undefined> {
  let failure: Error | undefined;
  session.on("error", (error) => {
    failure ??= error;
  });
  return new Promise((resolve) => session.once("close", () => resolve(failure)));
}

function flood(socket: Socket, bytes: Buffer): void {
  const chunk = Buffer.concat(Array<Buffer>(1_000).fill(bytes));
  const send = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on("drain", send);
  send();
}

it.each([
  { name: "DATA of one byte", bytes: tiny },
  { name: "WINDOW_UPDATE", bytes: frame(WINDOW_UPDATE, 0, 0, Buffer.from([0, 0, 0, 1])) },
  { name: "RST_STREAM", bytes: frame(RST_STREAM, 0, STREAM, Buffer.from([0, 0, 0, 8])) },
  { name: "ORIGIN", bytes: frame(ORIGIN, 0, 0, none) },
])("a peer that sends $name without end loses the connection", async ({ bytes }) => {
  const over = closed();
  request().resume();
  const socket = await peer;
  socket.write(ok);
  flood(socket, bytes);
  expect(await over).toMatchObject({ code: "exhausted", id: "NK1320" });
});

it("also while nobody reads the stream", async () => {
  const over = closed();
  request();
  const socket = await peer;
  socket.write(ok);
  flood(socket, tiny);
  expect(await over).toMatchObject({ id: "NK1320" });
});

it("a peer within the budget keeps the connection, and a bounded number of frames is processed per turn", async () => {
  const over = closed();
  const stream = request();
  let inTurn = 0;
  let mostInTurn = 0;
  let bytes = 0;
  const received = new Promise<void>((resolve) =>
    stream.on("data", (chunk: Buffer) => {
      if (inTurn === 0) setImmediate(() => (inTurn = 0));
      inTurn += 1;
      mostInTurn = Math.max(mostInTurn, inTurn);
      bytes += chunk.length;
      if (bytes === FRAMES_AT_ONCE) resolve();
    }),
  );
  const socket = await peer;
  socket.write(Buffer.concat([ok, ...Array<Buffer>(FRAMES_AT_ONCE).fill(tiny)]));
  await Promise.race([received, over]);
  expect(bytes).toBe(FRAMES_AT_ONCE);
  // A read that has begun is processed to its end. The counters are reset in the same phase, in either order.
  expect(mostInTurn).toBeLessThanOrEqual(2 * (FRAMES_PER_TURN + READ_BYTES / tiny.length));
  expect(session.destroyed).toBe(false);
});

it("a peer keeps the connection if it sends within the flow control window of a call before it learns of its end", async () => {
  const windowBytes = 4 * 1024 * 1024;
  await peer;
  session.destroy();
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
  session = openHttp2Session(join(directory, "s"), { settings: { initialWindowSize: windowBytes } });
  const over = closed();
  await new Promise((connected) => session.once("connect", connected));
  session.setLocalWindowSize(windowBytes);
  const cancelled = request();
  const socket = await accepted;
  socket.write(ok);
  await new Promise((responded) => cancelled.once("response", responded));
  cancelled.close(constants.NGHTTP2_CANCEL);
  const other = request();
  let bytes = 0;
  const received = new Promise<void>((resolve) =>
    other.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes === FRAMES_PER_TURN) resolve();
    }),
  );
  const late = frame(DATA, 0, STREAM, Buffer.alloc(16_384));
  const next = STREAM + 2;
  const answer = [
    frame(HEADERS, END_HEADERS, next, Buffer.from([0x88])),
    ...Array<Buffer>(FRAMES_PER_TURN).fill(frame(DATA, 0, next, Buffer.alloc(1))),
  ];
  socket.write(Buffer.concat([...Array<Buffer>(100).fill(late), ...answer]));
  await Promise.race([received, over]);
  expect(bytes).toBe(FRAMES_PER_TURN);
  expect(session.destroyed).toBe(false);
});

it("a connection that fails is reported", async () => {
  session.destroy();
  session = openHttp2Session(join(directory, "none"));
  expect(await closed()).toMatchObject({ code: "ENOENT" });
});
