import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { Attack, Target } from "../attack.ts";

/** Of a user of the node, on the loopback. */
export const httpAttacks: readonly Attack[] = [
  {
    name: "streams",
    about: "1,000 requests for streams of events, each on a connection of its own, again and again",
    isShort: true,
    run: (target) => forever(() => many(1_000, target, get("/api/v1/stream"), 500)),
  },
  {
    name: "resets",
    about: "connections that are reset after half a request, in a loop",
    isShort: true,
    run: (target) => forever(() => many(100, target, "GET /livez HTTP/1.1\r\nHo", 0)),
  },
  {
    name: "pipelined",
    about: "20,000 requests on one connection at once",
    isShort: true,
    run: (target) => forever(() => many(1, target, get("/livez").repeat(20_000), 500)),
  },
  {
    name: "headers",
    about: "headers of 15 KiB in 2,000 lines, on 60 connections",
    isShort: true,
    run: (target) => forever(() => many(60, target, withHeaders(2_000), 100)),
  },
  {
    name: "paths",
    about: "requests for files outside of the page, with invented tokens, of other methods and hosts",
    isShort: false,
    run: (target) => forever(() => many(50, target, tricks.join(""), 50)),
  },
  {
    name: "metrics",
    about: "50 connections that ask for all metrics",
    isShort: false,
    run: (target) => forever(() => many(50, target, get("/metrics"), 20)),
  },
];

function get(path: string, headers = "", method = "GET"): string {
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
}

function withHeaders(lines: number): string {
  return get("/livez", Array.from({ length: lines }, (_, at) => `a${at}:1\r\n`).join(""));
}

const tricks = [
  get("/page/../../../../etc/passwd"),
  get("/page/%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
  get("/api/v1/pods", `Authorization: Bearer ${"x".repeat(2_000)}\r\n`),
  get("/api/v1/eviction/node", "", "DELETE"),
  "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n",
];

/** Sends the same bytes on so many connections, which are reset after a while. */
async function many(count: number, { port }: Target, bytes: string, keptMs: number): Promise<void> {
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at++) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    socket.write(bytes, () => keptMs === 0 && socket.resetAndDestroy());
    sockets.push(socket);
  }
  if (keptMs === 0) {
    await Promise.all(sockets.map((socket) => new Promise((closed) => socket.once("close", closed))));
    return;
  }
  await new Promise((later) => setTimeout(later, keptMs));
  for (const socket of sockets) socket.resetAndDestroy();
}

async function forever(work: () => Promise<void>): Promise<never> {
  for (;;) {
    await work();
    await turn();
  }
}
