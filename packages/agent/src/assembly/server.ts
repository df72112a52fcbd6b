import {
  createHealthMetrics,
  createServerMetrics,
  createStatusServer,
  type JsonRoute,
  type StatusServer,
} from "../server/index.ts";
import type { AgentContext } from "./context.ts";
import type { AgentPart } from "./part.ts";
import { remoteAccessOf } from "./remote-access.ts";

/** The status servers of one agent. */
export interface StatusServers {
  /** At `server.address`. */
  main: StatusServer;
  /** At `server.remoteAddress`; undefined where there is none. */
  remote: StatusServer | undefined;
}

/** Builds the status servers: health, metrics and the JSON API of all parts. */
export function statusServersOf(context: AgentContext, parts: readonly AgentPart[]): StatusServers {
  const { configuration, version, client, clock, log, registry } = context;
  const { nodeName, server } = configuration();
  const access = remoteAccessOf(configuration(), client, clock, log);
  const versionRoute: JsonRoute = {
    path: "version",
    summary: "The agent's version and node.",
    handle: () => ({ version, nodeName, node: process.version }),
  };
  const checks = parts.flatMap((part) => part.checks);
  createHealthMetrics(registry, checks);
  const common = {
    ...(access ? { remote: access } : {}),
    checks,
    registry,
    metrics: createServerMetrics(registry),
    routes: [...parts.flatMap(({ routes }) => routes), versionRoute],
    clock,
    log: log.child({ component: "server" }),
  };
  return {
    main: createStatusServer({ ...common, address: server.address }),
    remote:
      server.remoteAddress === ""
        ? undefined
        : createStatusServer({ ...common, name: "remote-status-server", address: server.remoteAddress }),
  };
}
