import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import { RegistrationDefinition } from "../gen/pluginregistration/v1/api.ts";
import { dialUnix, limitInformationalAnswers } from "./index.ts";
import { frame } from "./testing/frames.ts";

const SETTINGS = 4;
const HEADERS = 1;
const END_HEADERS = 4;

// ":status: 103", not indexed.
const earlyHints = frame(HEADERS, END_HEADERS, 1, Buffer.from([0x08, 3, 0x31, 0x30, 0x33]));
const chunk = Buffer.concat(Array<Buffer>(1_000).fill(earlyHints));

let directory: string;
let server: Server;
let bytesSent = 0;
let closed: Promise<void>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "informational-"));
  const { promise, resolve } = Promise.withResolvers<void>();
  closed = promise;
  server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("close", () => resolve());
    socket.write(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
    socket.once("data", () => flood(socket));
  });
  await new Promise<void>((listening) => server.listen(join(directory, "s"), listening));
});

afterEach(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

function flood(socket: Socket): void {
  while (!socket.destroyed && socket.write(chunk)) bytesSent += chunk.length;
  socket.once("drain", () => flood(socket));
}

it("a server that sends too many informational responses loses its connection", async () => {
  using _limit = limitInformationalAnswers();
  const channel = dialUnix(join(directory, "s"), { maxReceiveBytes: 64 * 1024 });
  const call = createClient(RegistrationDefinition, channel).getInfo({});
  await expect(call).rejects.toThrow();
  await closed;
  channel.close();
  // Data that the kernel accepted before the connection ended. Node's own limit applies after 3.3 MB.
  expect(bytesSent).toBeLessThan(2 * 1024 * 1024);
});
