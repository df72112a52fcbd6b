import { connect } from "node:net";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { StatusServer } from "../../../packages/agent/src/server/index.ts";
import { bytesOf, type FuzzTarget } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const line = fc
  .record({
    method: fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "get", "PRI"),
    path: fc.oneof(
      fc.constantFrom(
        "/livez",
        "/readyz?verbose",
        "/metrics",
        "/api/v1/echo?a=1",
        "/api/v1/",
        "*",
        "//a",
        "/%zz",
        "http://a/livez",
      ),
      fc.webPath(),
    ),
    version: fc.constantFrom("HTTP/1.1", "HTTP/1.0", "HTTP/2.0"),
    headers: fc.array(
      fc.oneof(
        fc.constantFrom(
          "Host: localhost",
          "Host: evil.example.com",
          "Content-Length: 5",
          "Transfer-Encoding: chunked",
          "Connection: upgrade",
          "Expect: 100-continue",
        ),
        fc
          .tuple(fc.string({ maxLength: 10 }), fc.string({ maxLength: 40 }))
          .map(([name, value]) => `${name}: ${value}`),
      ),
      { maxLength: 5 },
    ),
  })
  .map(
    ({ method, path, version, headers }) =>
      `${[`${method} ${path} ${version}`, ...headers].join("\r\n")}\r\n\r\n`,
  );
const inputs = mutated(
  fc.array(line, { minLength: 1, maxLength: 4 }).map((lines) => bytesOf(lines.join(""))),
);

let server: Promise<{ port: number; stop: () => Promise<void> }> | undefined;

async function start() {
  const status = new StatusServer({
    context: { registry: new Registry(), clock: systemClock, log: silentLogger },
    served: {
      checks: [],
      routes: [{ path: "echo", summary: "Its query.", handle: (query) => Object.fromEntries(query) }],
    },
    address: "127.0.0.1:0",
  });
  const controller = new AbortController();
  const running = status.run(controller.signal);
  const address = await status.ready();
  return {
    port: Number(address.split(":").at(-1)),
    stop: async () => {
      controller.abort(stopped("fuzzing is over"));
      await running;
    },
  };
}

/** Requests to the status server: it answers or closes, and answers the next one. */
export const http: FuzzTarget = {
  name: "http",
  about: "requests to the status server",
  inputs,
  async run(input) {
    server ??= start();
    const { port } = await server;
    const answer = await exchange(port, input);
    for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d+)/gm))
      if (Number(status) >= 500) throw new Error(`answered ${answer.slice(0, 200)}`);
    const next = await exchange(
      port,
      bytesOf("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    );
    if (!next.startsWith("HTTP/1.1 200 OK")) throw new Error(`/livez afterwards: ${next.slice(0, 100)}`);
  },
  async close() {
    const running = server;
    server = undefined;
    await (await running)?.stop();
  },
};

/** Sends all of it, ends, and returns what comes until the server closes. */
function exchange(port: number, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.end(bytes));
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => {});
    socket.once("close", () => resolve(answer));
  });
}
