import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";

it("fetch() of tests makes a connection for each request, and keeps the headers it is given", async () => {
  const sockets = new Set<unknown>();
  const headers: (string | undefined)[][] = [];
  const server = createServer((request, response) => {
    sockets.add(request.socket);
    headers.push([request.headers.connection, request.headers.accept]);
    response.end("a");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const accept = "text/a";
  await (await fetch(url, { headers: { accept } })).text();
  await (await fetch(new Request(url, { headers: { accept } }))).text();
  await new Promise((resolve) => server.close(resolve));
  expect(sockets.size).toBe(2);
  expect(headers).toEqual([
    ["close", accept],
    ["close", accept],
  ]);
});
