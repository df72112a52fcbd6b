import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Pace, PacedSocket } from "./paced-socket.ts";

const everything: Pace = { next: (chunk) => chunk.length, later: (callback) => setImmediate(callback) };

it("reused memory does not overwrite data that waits for a reader that pauses", async () => {
  const directory = mkdtempSync(join(tmpdir(), "paced-"));
  const sent = Buffer.from(Uint8Array.from({ length: 1_000_000 }, (_, at) => (at * 31) % 251));
  const server = createServer((peer) => peer.end(sent));
  const path = join(directory, "s");
  await new Promise<void>((listening) => server.listen(path, listening));
  try {
    const socket = PacedSocket.connect(path, everything);
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => {
      received.push(Buffer.from(chunk));
      if (received.length % 3 > 0) return;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    await new Promise((resolve, reject) => socket.once("close", resolve).once("error", reject));
    expect(Buffer.concat(received).equals(sent)).toBe(true);
  } finally {
    server.close();
    rmSync(directory, { recursive: true });
  }
});
