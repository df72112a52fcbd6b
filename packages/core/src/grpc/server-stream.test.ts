import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { streamMessages } from "./server-stream.ts";

let directory: string;
let server: Http2Server;
let serve: (stream: ServerHttp2Stream) => void;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-stream-"));
  server = createServer();
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.resume();
    stream.respond({ "content-type": "application/grpc" }, { waitForTrailers: true });
    serve(stream);
  });
  server.listen(join(directory, "s.sock"));
  await once(server, "listening");
});
afterEach(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

/** A message whose bytes all have the value `fill`. */
function message(fill: number, size: number): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(size, 1);
  return Buffer.concat([header, Buffer.alloc(size, fill)]);
}

/** Ends the call with a status after the messages that were written. */
function end(stream: ServerHttp2Stream, status: string): void {
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status, "grpc-message": "why" }));
  stream.end();
}

function messages(signal = new AbortController().signal): AsyncGenerator<Buffer> {
  const path = join(directory, "s.sock");
  const call = { method: "a.B/C", request: new Uint8Array() };
  return streamMessages(path, call, { maxReceiveBytes: 1_000_000 }, signal);
}

describe("a stream of messages", () => {
  it("yields each message unchanged and in order, however long the consumer takes", async () => {
    const sizes = Array.from({ length: 120 }, (_, at) => [0, 3, 200, 9_000, 70_000, 300_000][(at * 7) % 6]!);
    serve = (stream) => {
      for (const [at, size] of sizes.entries()) stream.write(message(at, size));
      end(stream, "0");
    };
    const received: number[] = [];
    for await (const bytes of messages()) {
      for (let turns = received.length % 4; turns > 0; turns--) await nextTurn();
      const fill = received.length;
      expect(bytes.every((byte) => byte === fill)).toBe(true);
      received.push(bytes.length);
    }
    expect(received).toEqual(sizes);
  });

  it("yields the messages before the status that the call ends with, even to a slow consumer", async () => {
    serve = (stream) => {
      stream.write(Buffer.concat([message(1, 10), message(2, 10)]));
      stream.write(message(3, 100_000));
      end(stream, "9");
    };
    const stream = messages();
    for (const fill of [1, 2, 3]) {
      expect((await stream.next()).value?.[0]).toBe(fill);
      await nextTurn();
    }
    await expect(stream.next()).rejects.toThrow("why");
  });

  it("fails if it ends in the middle of a message", async () => {
    serve = (stream) => {
      stream.write(Buffer.concat([message(1, 10), message(2, 10).subarray(0, 8)]));
      end(stream, "0");
    };
    const stream = messages();
    await stream.next();
    await expect(stream.next()).rejects.toThrow("ended in the middle of a message");
  });

  it("fails with the signal's reason, also if it aborts while the consumer has a message", async () => {
    serve = (stream) => void stream.write(message(1, 10));
    const controller = new AbortController();
    const stream = messages(controller.signal);
    await stream.next();
    controller.abort(new Error("the driver left"));
    await expect(stream.next()).rejects.toThrow("the driver left");
  });

  it("closes the call if the consumer returns early", async () => {
    const closed = Promise.withResolvers<void>();
    serve = (stream) => {
      stream.once("close", closed.resolve);
      for (let at = 0; at < 50; at++) stream.write(message(at, 100_000));
    };
    for await (const _ of messages()) break;
    await closed.promise;
  });

  it("lets the server send no more than the flow control window while the consumer has a message", async () => {
    let written = 0;
    const blocked = Promise.withResolvers<void>();
    serve = async (stream) => {
      for (; written < 500; written++) {
        if (stream.write(message(1, 100_000))) continue;
        const drained = once(stream, "drain").then(() => true);
        const quiet = new Promise<boolean>((resolve) => setTimeout(resolve, 1_000, false));
        if (!(await Promise.race([drained, quiet]))) break;
      }
      blocked.resolve();
    };
    const stream = messages();
    await stream.next();
    await blocked.promise;
    expect(written).toBeLessThan(100);
    await stream.return(undefined);
  });
});
