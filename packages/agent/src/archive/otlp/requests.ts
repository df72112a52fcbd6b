import { ExportLogsServiceRequest } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import {
  ExportTraceServiceRequest,
  ScopeSpans,
  type Span,
} from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import type { ArchiveRecord } from "../records/archive-record.ts";
import type { OtlpRequest } from "./delivery.ts";
import { logsRequest, type Origin, SCHEMA_URL, scopeOf } from "./logs.ts";

/** Encodes the logs of records. @param now when they are exported, milliseconds since the epoch */
export function encodeLogs(records: readonly ArchiveRecord[], origin: Origin, now: number): OtlpRequest {
  const body = ExportLogsServiceRequest.encode(logsRequest(records, origin, now)).finish();
  return { signal: "logs", body };
}

/** Encodes a trace for the queue. */
export function packSpans(spans: readonly Span[]): Uint8Array {
  return ScopeSpans.encode({ scope: undefined, spans: [...spans], schemaUrl: "" }).finish();
}

/** Decodes a queued trace. Returns none if it can't be read. */
export function unpackSpans(bytes: Uint8Array): Span[] {
  try {
    return ScopeSpans.decode(bytes).spans;
  } catch {
    return [];
  }
}

/** Encodes a request with spans. */
export function encodeTraces(spans: Span[], origin: Origin): OtlpRequest {
  const scopeSpans = [{ scope: scopeOf(origin), spans, schemaUrl: SCHEMA_URL }];
  const resourceSpans = [{ resource: origin.resource, scopeSpans, schemaUrl: SCHEMA_URL }];
  return { signal: "traces", body: ExportTraceServiceRequest.encode({ resourceSpans }).finish() };
}
