import { once } from "node:events";
import { createServer, type ServerResponse, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import type { HostileServer } from "./attack.ts";

/** A proxy in front of an API server. */
export interface Proxy {
  url: string;
  /** From now on it is hostile: ends all watches. */
  attack(): void;
  close(): Promise<void>;
}

export async function startProxy(apiServer: string, { fromStart, answer }: HostileServer): Promise<Proxy> {
  let isHostile = fromStart;
  const watches = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    request.on("error", () => {});
    response.on("error", () => {});
    if (isHostile && answer(request, response)) return;
    const { method, headers } = request;
    const passed = send(new URL(request.url!, apiServer), { method: method!, headers }, (answered) => {
      response.writeHead(answered.statusCode!, answered.headers);
      answered.pipe(response);
    });
    passed.on("error", () => response.destroy());
    if (request.url!.includes("watch=true")) watches.add(response);
    response.once("close", () => {
      watches.delete(response);
      passed.destroy();
    });
    request.pipe(passed);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attack() {
      isHostile = true;
      for (const response of watches) response.destroy();
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
