import { stateTopics } from "@nodekeeper/api/http";
import {
  apiRoute,
  createHealthMetrics,
  createServerMetrics,
  delegatedAccess,
  documentRoute,
  type JsonRoute,
  type NumberedItems,
  type ReadPageFile,
  type RemoteAccess,
  ServingCertificate,
  StatusServer,
  type StreamedState,
  Streams,
  unservedRoutes,
} from "../server/index.ts";
import type { AgentContext } from "./context.ts";
import type { EvictionPart } from "./eviction.ts";
import { nodeRoute, type SummarizedParts } from "./node-summary.ts";
import type { AgentPart } from "./part.ts";

/** The status servers of one agent. */
export interface StatusServers {
  /** At `server.address`. */
  main: StatusServer;
  /** At `server.remoteAddress`; undefined if it is not configured. */
  remote: StatusServer | undefined;
}

const MARKS_AT_ONCE = 200;

/** Builds the status servers: health, metrics and the JSON API of all parts. */
export function statusServersOf(
  context: AgentContext,
  parts: readonly AgentPart[],
  summarized: SummarizedParts,
  page: ReadPageFile | undefined,
): StatusServers {
  const { configuration, clock, log, registry } = context;
  const { server } = configuration();
  const access = remoteAccessOf(context);
  const checks = parts.flatMap((part) => part.checks);
  const routes = [
    ...versionRoutes(context),
    nodeRoute(context, summarized, checks),
    ...parts.flatMap((part) => part.routes),
  ];
  routes.push(...unservedRoutes(new Set(routes.map(({ path }) => path))));
  createHealthMetrics(registry, checks);
  const metrics = createServerMetrics(registry);
  const common = {
    context: { registry, metrics, clock, log: log.child({ logger: "server" }) },
    served: {
      checks,
      routes,
      streams: streamsOf(context, routes, summarized),
      ...(page ? { page } : {}),
    },
    ...(access ? { remote: access } : {}),
  };
  return {
    main: new StatusServer({ ...common, address: server.address }),
    remote:
      server.remoteAddress === ""
        ? undefined
        : new StatusServer({ ...common, name: "remote-status-server", address: server.remoteAddress }),
  };
}

// Undefined if no certificate is configured.
function remoteAccessOf({ configuration, client, clock, log }: AgentContext): RemoteAccess | undefined {
  const { tlsCertFile: certFile, tlsPrivateKeyFile: privateKeyFile } = configuration().server;
  if (certFile === "") return undefined;
  const serverLog = log.child({ logger: "server" });
  return {
    certificate: new ServingCertificate({ certFile, privateKeyFile, clock, log: serverLog }),
    check: delegatedAccess({ client, clock }),
  };
}

function versionRoutes({ configuration, version, startedAt }: AgentContext): JsonRoute[] {
  const { nodeName } = configuration();
  return [
    apiRoute("version", () => ({ version, nodeName, node: process.version, startedAt })),
    documentRoute(version),
  ];
}

function streamsOf(
  { clock, marks }: AgentContext,
  routes: readonly JsonRoute[],
  { lifecycle, eviction }: SummarizedParts,
): Streams {
  const isServed = ({ path }: JsonRoute) => eviction !== undefined || !path.startsWith("eviction/");
  const states: StreamedState[] = routes.filter(
    (route) => (stateTopics as readonly string[]).includes(route.path) && isServed(route),
  );
  if (eviction) states.push({ path: "readings", handle: () => eviction.readings.last ?? null });
  const numbered = {
    rounds: eviction && roundsOf(eviction.queries),
    marks: {
      get lastId() {
        return marks.lastId;
      },
      after: async (after: number) =>
        marks.page({ since: 0, until: Number.MAX_SAFE_INTEGER, after, limit: MARKS_AT_ONCE }).items,
    },
  };
  return new Streams({ states, events: lifecycle?.generator.events, numbered, clock });
}

function roundsOf(queries: EvictionPart["queries"]): NumberedItems {
  return {
    get lastId() {
      return queries.lastRoundId;
    },
    after: (id, signal) => queries.rounds(0, id, signal),
  };
}
