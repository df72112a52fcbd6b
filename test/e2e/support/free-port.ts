import { once } from "node:events";
import { createServer } from "node:net";
import { worker, workers } from "./worker.ts";

// Below the range from which the kernel takes the local port of a connection (ip_local_port_range, 32768 and up by default):
// from that range any connection of the machine could take the port before the process that it is for has started.
// A process may listen only some time after it was given its port, so test files that run at the same time use separate
// ranges.
const SIZE = 12_000 / workers;
const FIRST = 20_000 + worker * SIZE;
const LAST = FIRST + SIZE - 1;

let next = FIRST + Math.floor(Math.random() * (LAST - FIRST));

/** A TCP port of loopback on which no process listens now, and that no connection takes. Each call gives another. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = next;
    next = port < LAST ? port + 1 : FIRST;
    if (await isFree(port)) return port;
  }
  throw new Error("no free port in 100 tries");
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}
