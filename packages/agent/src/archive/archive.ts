import type { AgentConfiguration, EvictionSettings } from "@nodekeeper/api/settings";
import { type Clock, type Logger, messageOf, type Registry } from "@nodekeeper/core/lib";
import { EvictionRecords } from "../eviction/index.ts";
import { ArchiveStore, EvictionStore, HistoryStore, type StateDatabase } from "../state/index.ts";
import { ArchiveExporter } from "./exporter.ts";
import { createArchiveMetrics } from "./metrics.ts";
import { GrpcTransport } from "./otlp/grpc-transport.ts";
import { HttpTransport } from "./otlp/http-transport.ts";
import type { Origin } from "./otlp/logs.ts";
import { attributesOf } from "./records/otlp-values.ts";
import { type ArchiveSources, RecordBuilder } from "./records/record-builder.ts";

export interface ArchiveOptions {
  settings: AgentConfiguration["archive"];
  recordSettings: () => EvictionSettings["records"];
  database: StateDatabase;
  registry: Registry;
  version: string;
  nodeName: string;
  /** Reads the UID of the Node. */
  nodeUid: (signal: AbortSignal) => Promise<string | undefined>;
  clock: Clock;
  log: Logger;
}

// Records are exported without the UID while the API server can't be reached.
const UID_RETRY_MS = 60_000;

/** Builds the exporter of the agent's records. */
export function createArchive(options: ArchiveOptions): ArchiveExporter {
  const { settings, database, registry, version, nodeName, clock } = options;
  const store = new ArchiveStore(database, clock, nodeName);
  const { endpoint, caFile, headersFile, compression } = settings;
  const transportOptions = { endpoint, caFile, headersFile, compression, userAgent: `nodekeeper/${version}` };
  return new ArchiveExporter({
    ...options,
    store,
    builder: new RecordBuilder(sourcesOf(options), settings.traces),
    transport:
      settings.protocol === "grpc"
        ? new GrpcTransport(transportOptions)
        : new HttpTransport(transportOptions),
    origin: originOf(options),
    metrics: createArchiveMetrics(registry, {
      queuedRecords: () => store.queuedRecords(),
      queuedTraces: () => store.queuedTraces(),
      lagSeconds: () => Math.max(clock.now() - (store.oldestAt() ?? clock.now()), 0) / 1_000,
    }),
  });
}

function sourcesOf({ database, recordSettings, clock, log }: ArchiveOptions): ArchiveSources {
  const store = new EvictionStore(database);
  const records = new EvictionRecords({ store, settings: recordSettings, clock, log });
  return archiveSources(database, records);
}

/** Returns what the records are built from. */
export function archiveSources(database: StateDatabase, records: EvictionRecords): ArchiveSources {
  const evictions = new EvictionStore(database);
  const history = new HistoryStore(database);
  const round = (id: number) => {
    const [found] = records.rounds({ after: id - 1, limit: 1 });
    return found?.id === id ? found : undefined;
  };
  return {
    round,
    selection({ uid, selectedAt }) {
      const id = evictions.roundIdOfPodAt(uid, selectedAt);
      return id === undefined ? undefined : round(id);
    },
    pod: (uid) => history.pod(uid),
    events: (uid) => history.events(uid),
    steps: (uid) => evictions.steps(uid),
    podOfUid: (uid) => evictions.podOfUid(uid) ?? history.pod(uid),
  };
}

function originOf({ settings, version, nodeName, nodeUid, clock, log }: ArchiveOptions): ArchiveOriginReader {
  let uid: string | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    if (uid === undefined && clock.monotonic() - askedAt >= UID_RETRY_MS) {
      askedAt = clock.monotonic();
      uid = await nodeUid(signal).catch((error) => {
        signal.throwIfAborted();
        log.warn(
          { err: error, problem: messageOf(error) },
          "failed to read the Node's UID for exported records",
        );
        return undefined;
      });
    }
    const configured = settings.attributes.map((text) => text.split(/=(.*)/s, 2) as [string, string]);
    const attributes = attributesOf({
      "service.name": "nodekeeper",
      "service.version": version,
      "k8s.node.name": nodeName,
      "k8s.node.uid": uid,
      ...Object.fromEntries(configured),
    });
    return { version, resource: { attributes } };
  };
}

type ArchiveOriginReader = (signal: AbortSignal) => Promise<Origin>;
