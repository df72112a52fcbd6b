import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { UnaryChannel } from "./unary-channel.ts";

type Answer = (stream: ServerHttp2Stream) => void;
const framed = (text: string, flag = 0) => {
  const header = Buffer.alloc(5);
  header[0] = flag;
  header.writeUInt32BE(text.length, 1);
  return Buffer.concat([header, Buffer.from(text)]);
};
const headers = { ":status": 200, "content-type": "application/grpc" };

/** Sends a body, then the status as trailers. */
const answered =
  (body: Buffer, status = "0"): Answer =>
  (stream) => {
    stream.respond(headers, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
    stream.end(body);
  };

async function call(
  answer: Answer,
  {
    signal = new AbortController().signal,
    pieces = [Buffer.from("x"), Buffer.from("yz")],
    maxReceiveBytes = 10,
  } = {},
): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "nkg-"));
  const path = join(directory, "a.sock");
  const server = createServer();
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    answer(stream);
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const channel = new UnaryChannel(path, { maxReceiveBytes });
  try {
    const message = await channel.call("a.B/C", pieces, signal);
    return Buffer.from(message).toString();
  } finally {
    channel.close();
    for (const session of sessions) session.destroy();
    server.close();
    rmSync(directory, { recursive: true });
  }
}

it("sends the pieces as one message, and gives the answer", async () => {
  const echo: Answer = (stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => answered(Buffer.concat(chunks))(stream));
  };
  expect(await call(echo)).toBe("xyz");
  // Too large to be copied together before it is sent.
  const pieces = [Buffer.alloc(20_000, "a"), Buffer.alloc(20_000, "b")];
  expect(await call(echo, { pieces, maxReceiveBytes: 50_000 })).toBe("a".repeat(20_000) + "b".repeat(20_000));
});

it("takes an empty answer, and one of exactly the limit", async () => {
  expect(await call(answered(framed("")))).toBe("");
  expect(await call(answered(framed("0123456789")))).toBe("0123456789");
});

it.each<[string, Answer, string, RegExp]>([
  ["is too large", answered(framed("0123456789a")), "exhausted", /larger than 10 bytes/],
  ["is compressed", answered(framed("a", 1)), "unavailable", /not one complete message/],
  ["is torn", answered(framed("abc").subarray(0, 6)), "unavailable", /not one complete message/],
  ["is two messages", answered(Buffer.concat([framed("a"), framed("b")])), "unavailable", /not one complete/],
  ["has no message", answered(Buffer.alloc(0)), "unavailable", /not one complete/],
  [
    "is a failure among the headers",
    (stream) =>
      stream.respond({ ...headers, "grpc-status": "8", "grpc-message": "no%20room" }, { endStream: true }),
    "exhausted",
    /^no room$/,
  ],
  ["has an unknown status", answered(framed(""), "77"), "unavailable", /UNKNOWN/],
  [
    "is plain HTTP",
    (stream) => stream.respond({ ":status": 404 }, { endStream: true }),
    "unavailable",
    /status 404/,
  ],
  [
    "has no trailers",
    (stream) => {
      stream.respond(headers);
      stream.end(framed("a"));
    },
    "unavailable",
    /ended before/,
  ],
  ["breaks off", (stream) => stream.session?.destroy(), "unavailable", /./],
])("an answer that %s fails", async (_, answer, code, message) => {
  await expect(call(answer)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

it("ends with the reason of its signal", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const called = call(() => controller.abort(reason), { signal: controller.signal });
  await expect(called).rejects.toBe(reason);
});
