import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { StatusServer } from "./index.ts";

const REQUEST_STARTED = "http.server.request.start";

let port: number;
let end: () => Promise<void>;
const sockets: Socket[] = [];
/** Requests for which node:http made objects, and the most of one turn of the event loop. */
let started: number;
let mostInTurn: number;

beforeEach(async () => {
  const clock = new FakeClock();
  const context = { clock, registry: new Registry(), log: silentLogger };
  const served = { checks: [], routes: [] };
  const server = new StatusServer({ context, served, address: "127.0.0.1:0" });
  const stop = new AbortController();
  const running = server.run(stop.signal);
  port = Number((await server.ready()).split(":").at(-1));
  started = 0;
  mostInTurn = 0;
  let inTurn = 0;
  const onStarted = () => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    started++;
    mostInTurn = Math.max(mostInTurn, ++inTurn);
  };
  subscribe(REQUEST_STARTED, onStarted);
  end = async () => {
    unsubscribe(REQUEST_STARTED, onStarted);
    for (const socket of sockets.splice(0)) socket.destroy();
    stop.abort(new Error("the test is over"));
    await clock.step(1_000);
    await running;
  };
});
afterEach(() => end());

function open(bytes: string): { socket: Socket; text: () => string } {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  let text = "";
  socket.on("error", () => {}).on("data", (chunk) => (text += chunk));
  socket.write(bytes);
  return { socket, text: () => text };
}

const livez = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

it("reads no more of 20,000 pipelined requests than the first piece, answers the first, and closes", async () => {
  const { socket, text } = open(livez.repeat(20_000));
  await once(socket, "close");
  expect(text().match(/^HTTP\/1.1 200/gm)).toHaveLength(1);
  expect(started).toBeLessThan(100);
});

it("spreads the requests of many connections over turns of the event loop", async () => {
  const connections = Array.from({ length: 60 }, () => open(livez));
  for (const { text } of connections) await until("its answer", () => text().includes("HTTP/1.1 200"));
  expect(started).toBe(60);
  expect(mostInTurn).toBeLessThanOrEqual(40);
});

it("answers a request that comes byte by byte, and one of the largest size", async () => {
  const { socket, text } = open("");
  for (const byte of livez) {
    socket.write(byte);
    await new Promise((later) => setImmediate(later));
  }
  await until("its answer", () => text().includes("HTTP/1.1 200"));
  const large = open(`GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(15_000)}\r\n\r\n`);
  await until("its answer", () => large.text().includes("HTTP/1.1 200"));
  const tooLarge = open(`GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
  await until("its refusal", () => tooLarge.text().includes("HTTP/1.1 431"));
});
