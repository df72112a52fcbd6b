import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { type JsonRoute, StatusServer } from "../index.ts";

/** A status server with only these routes. */
export interface ServedRoutes {
  /** "127.0.0.1:41235" */
  address: string;
  stop(): Promise<void>;
}

/**
 * Serves routes of the JSON API over HTTP, by default on a free port. The server's clock does not advance, because a
 * handler may exceed its deadline on a busy machine.
 */
export async function serveRoutes(
  routes: readonly JsonRoute[],
  address = "127.0.0.1:0",
): Promise<ServedRoutes> {
  const context = { clock: new FakeClock(), log: silentLogger, registry: new Registry() };
  const server = new StatusServer({ context, address, served: { checks: [], routes } });
  const controller = new AbortController();
  const running = server.run(controller.signal);
  return {
    address: await server.ready(),
    async stop() {
      controller.abort();
      await running;
    },
  };
}
