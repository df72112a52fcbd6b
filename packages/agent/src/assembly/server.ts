import { createStatusServer, type JsonRoute, type StatusServer } from "../server/index.ts";
import type { AgentContext } from "./context.ts";
import type { AgentPart } from "./part.ts";
import { remoteAccessOf } from "./remote-access.ts";

/** Builds the status server: health, metrics and the JSON API of all parts. */
export function statusServerOf(context: AgentContext, parts: readonly AgentPart[]): StatusServer {
  const { configuration, version, client, clock, log, registry } = context;
  const { nodeName, server } = configuration();
  const remote = remoteAccessOf(configuration(), client, clock, log);
  const versionRoute: JsonRoute = {
    path: "version",
    summary: "The agent's version and node.",
    handle: () => ({ version, nodeName, node: process.version }),
  };
  return createStatusServer({
    address: server.address,
    ...(remote ? { remote } : {}),
    checks: parts.flatMap(({ checks }) => checks),
    registry,
    routes: [...parts.flatMap(({ routes }) => routes), versionRoute],
    clock,
    log: log.child({ component: "server" }),
  });
}
