import {
  GetReportContentResponse,
  type ReportField,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { checkMessageSize } from "./message-size.ts";

/** What a plugin sent: the bytes of one behind a socket, which mostly repeat the last; the message of an in-tree one. */
export type ReportMessage = Uint8Array | GetReportContentResponse;

/** Bytes of the values and names in it, about. */
export function sizeOf(message: ReportMessage): number {
  if (message instanceof Uint8Array) return message.length;
  let size = 0;
  for (const { field } of message.content) {
    for (const { fieldName, value } of field) size += fieldName.length + value.length;
  }
  return size;
}

/** Whether two messages say the same. One of bytes and one that is not count as different. */
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

/** The message itself. Throws `exhausted` for one of more parts than are worth decoding, and for bytes that are none. */
export function decoded(message: ReportMessage): GetReportContentResponse {
  if (!(message instanceof Uint8Array)) return message;
  checkMessageSize(message);
  return GetReportContentResponse.decode(message);
}

/** Its bytes, for the checkpoint. */
export function encoded(message: ReportMessage): Uint8Array {
  return message instanceof Uint8Array ? message : GetReportContentResponse.encode(message).finish();
}

/** A message that stays as it is: bytes may be a small piece of a large buffer of the transport. */
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
