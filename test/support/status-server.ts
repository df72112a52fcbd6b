import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { createStatusServer, type JsonRoute } from "../../packages/agent/src/server/index.ts";

/** Serves routes of the JSON API on a free port of loopback. */
export async function serveRoutes(
  routes: readonly JsonRoute[],
): Promise<{ address: string; stop: () => Promise<void> }> {
  const server = createStatusServer({
    address: "127.0.0.1:0",
    checks: [],
    registry: new Registry(),
    routes,
    clock: systemClock,
    log: silentLogger,
  });
  const controller = new AbortController();
  const running = server.run(controller.signal);
  const stop = async () => {
    controller.abort(stopped("test is over"));
    await running;
  };
  return { address: await server.whenListening(), stop };
}
