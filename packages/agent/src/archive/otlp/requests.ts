import { ExportLogsServiceRequest } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { ExportTraceServiceRequest } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import type { ArchiveRecord } from "../records/archive-record.ts";
import type { OtlpRequest } from "./delivery.ts";
import { logsRequest, type Origin, SCHEMA_URL, scopeOf } from "./logs.ts";

/** Encodes the logs of records. @param now when they are exported, milliseconds since the epoch */
export function encodeLogs(records: readonly ArchiveRecord[], origin: Origin, now: number): OtlpRequest {
  const body = ExportLogsServiceRequest.encode(logsRequest(records, origin, now)).finish();
  return { signal: "logs", body };
}

/** Encodes the traces of records. Undefined if there are none. */
export function encodeTraces(records: readonly ArchiveRecord[], origin: Origin): OtlpRequest | undefined {
  const spans = records.flatMap(({ trace = [] }) => trace);
  if (spans.length === 0) return undefined;
  const scopeSpans = [{ scope: scopeOf(origin), spans, schemaUrl: SCHEMA_URL }];
  const resourceSpans = [{ resource: origin.resource, scopeSpans, schemaUrl: SCHEMA_URL }];
  return { signal: "traces", body: ExportTraceServiceRequest.encode({ resourceSpans }).finish() };
}
