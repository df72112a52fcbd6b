import type { EventName } from "@nodekeeper/api/archive";
import type { Span } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";

/** An attribute's value in OTLP. Undefined attributes are left out. */
export type AttributeValue = string | number | boolean | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** An exported record: one log record of OTLP. */
export interface ArchiveRecord {
  /** The same however often the record is exported. */
  id: string;
  event: EventName;
  /** Milliseconds since the epoch. */
  at: number;
  severity: "info" | "warn";
  /** One line for people. */
  message: string;
  /** JSON of a type of the HTTP API: see `events`. */
  body: string;
  attributes: Attributes;
  /** The eviction that the record is about. Undefined if it is about none, or if that is not known. */
  eviction?: EvictionId | undefined;
  /** The trace of each eviction of the pod that the record's round ended. */
  traces?: readonly (readonly Span[])[];
}

/** A record without an ID, and with a body that is not yet serialized. */
export type RecordContent = Omit<ArchiveRecord, "id" | "body"> & { body: unknown };

/** Identifies an eviction: its pod, and the time of the round that selected it. */
export interface EvictionId {
  uid: string;
  /** Milliseconds since the epoch. */
  selectedAt: number;
}
