import { SCHEMA_VERSION } from "@nodekeeper/api/archive";
import type { InstrumentationScope, Resource } from "@nodekeeper/core/gen/opentelemetry/v1/common.ts";
import type { ExportLogsServiceRequest, LogRecord } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import type { ArchiveRecord } from "../records/archive-record.ts";
import { spanIdOf, traceIdOf } from "../records/eviction-trace.ts";
import { anyValueOf, attributesOf, nanosOf } from "../records/otlp-values.ts";

/** The semantic conventions of the attributes. */
export const SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0";

/** What all records of an agent have in common. */
export interface Origin {
  resource: Resource;
  /** The agent's version. */
  version: string;
}

const SCOPE = "nodekeeper.dev/archive";
const severities = { info: [9, "INFO"], warn: [13, "WARN"] } as const;
const NONE = new Uint8Array();

/** Returns a request with these records. @param now when they are exported, milliseconds since the epoch */
export function logsRequest(
  records: readonly ArchiveRecord[],
  origin: Origin,
  now: number,
): ExportLogsServiceRequest {
  const logRecords = records.map((record) => logRecordOf(record, now));
  const scopeLogs = [{ scope: scopeOf(origin), logRecords, schemaUrl: SCHEMA_URL }];
  return { resourceLogs: [{ resource: origin.resource, scopeLogs, schemaUrl: SCHEMA_URL }] };
}

/** Returns the scope of logs and traces. */
export function scopeOf({ version }: Origin): InstrumentationScope {
  return { name: SCOPE, version };
}

function logRecordOf(record: ArchiveRecord, now: number): LogRecord {
  const { id, event, at, severity, message, body, attributes, eviction } = record;
  const [severityNumber, severityText] = severities[severity];
  return {
    timeUnixNano: nanosOf(at),
    observedTimeUnixNano: nanosOf(now),
    severityNumber,
    severityText,
    eventName: event,
    body: anyValueOf(body),
    attributes: attributesOf({
      ...attributes,
      "nodekeeper.record.id": id,
      "nodekeeper.schema.version": SCHEMA_VERSION,
      "nodekeeper.message": message,
    }),
    traceId: eviction ? traceIdOf(eviction) : NONE,
    spanId: eviction ? spanIdOf(eviction, "") : NONE,
  };
}
