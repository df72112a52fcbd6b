import type { AnyValue, KeyValue } from "@nodekeeper/core/gen/opentelemetry/v1/common.ts";
import type { Attributes, AttributeValue } from "./archive-record.ts";

/** Converts milliseconds since the epoch to nanoseconds. */
export function nanosOf(ms: number): bigint {
  return BigInt(Math.floor(ms)) * 1_000_000n;
}

/** Converts attributes, without undefined ones. */
export function attributesOf(attributes: Attributes): KeyValue[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValueOf(value) }],
  );
}

export function anyValueOf(value: NonNullable<AttributeValue>): AnyValue {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: BigInt(value) } : { doubleValue: value };
}
