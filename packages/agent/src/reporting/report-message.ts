import {
  GetReportContentResponse,
  type ReportField,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { decodeMessage } from "@nodekeeper/core/grpc";
import type { GroupVersionKind } from "@nodekeeper/core/kube";

// Ten times the number of fields that are used. Decoding 4 MiB of empty fields takes half a gigabyte of memory and more
// than a second.
const most = 10_000;
// Field numbers in reporterplugin.v1alpha1: the contents of a response, and their fields.
const parts = { repeated: { 1: { 2: {} } }, most, what: "contents and fields" };

/**
 * A plugin's message: bytes from a socket, which usually equal the previous ones, or the object of an in-tree plugin.
 */
export type ReportMessage = Uint8Array | GetReportContentResponse;

/** Returns the approximate size of a message's names and values, in bytes. */
export function sizeOf(message: ReportMessage): number {
  if (message instanceof Uint8Array) return message.length;
  let size = 0;
  for (const { field } of message.content) {
    for (const { fieldName, value } of field) size += fieldName.length + value.length;
  }
  return size;
}

/** Returns whether two messages are equal. Bytes never equal an object. */
export function isSameMessage(a: ReportMessage, b: ReportMessage): boolean {
  if (a === b) return true;
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  }
  return isSameList(
    a.content,
    b.content,
    (one, other) =>
      isSameKind(one.groupVersionKind, other.groupVersionKind) &&
      isSameList(one.field, other.field, isSameField),
  );
}

/** Decodes a message. Throws `exhausted` if it has too many parts, and `invalid` if the bytes are no message. */
export function decoded(message: ReportMessage): GetReportContentResponse {
  return message instanceof Uint8Array ? decodeMessage(GetReportContentResponse, message, parts) : message;
}

/** Encodes a message for the checkpoint. */
export function encoded(message: ReportMessage): Uint8Array {
  return message instanceof Uint8Array ? message : GetReportContentResponse.encode(message).finish();
}

/** Returns a message that can be retained. Copies bytes, which may be a slice of a large transport buffer. */
export function kept(message: ReportMessage): ReportMessage {
  return message instanceof Uint8Array ? Uint8Array.from(message) : message;
}

function isSameList<T>(a: readonly T[], b: readonly T[], isSame: (one: T, other: T) => boolean): boolean {
  return a.length === b.length && a.every((one, at) => isSame(one, b[at]!));
}

function isSameKind(a: GroupVersionKind | undefined, b: GroupVersionKind | undefined): boolean {
  return a?.group === b?.group && a?.version === b?.version && a?.kind === b?.kind;
}

function isSameField(a: ReportField, b: ReportField): boolean {
  return a.fieldType === b.fieldType && a.fieldName === b.fieldName && Buffer.compare(a.value, b.value) === 0;
}
