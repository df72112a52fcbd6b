import { randomUUID } from "node:crypto";
import type { KubeObject, ObjectReference } from "./types.ts";

/** Something that happened to an object, for people who describe it with kubectl. */
export interface EventInput {
  type: "Normal" | "Warning";
  /** UpperCamelCase, for programs: "EvictionFailed". */
  reason: string;
  message: string;
  regarding: ObjectReference;
}

const LONGEST_MESSAGE_BYTES = 1_024;
const LONGEST_NAME = 253;

/** The message, cut to 1,024 bytes of UTF-8 at a character's end. */
export function truncated(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= LONGEST_MESSAGE_BYTES) return message;
  let end = LONGEST_MESSAGE_BYTES - 3;
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString("utf8")}...`;
}

/** A key of the object that an Event is about. */
export function objectKey({ regarding }: EventInput): string {
  const { apiVersion, kind, namespace, name, uid } = regarding;
  return JSON.stringify([apiVersion, kind, namespace, name, uid]);
}

/** A key that repeats of an Event share. */
export function eventKey(input: EventInput): string {
  return JSON.stringify([objectKey(input), input.type, input.reason, input.message]);
}

/** A new core/v1 Event. Objects without a namespace have theirs in "default", where kubectl looks for them. */
export function newEvent(
  input: EventInput,
  report: { component: string; host: string; count: number; firstAt: number; lastAt: number },
): KubeObject {
  const { regarding, type, reason, message } = input;
  const suffix = `.${randomUUID().slice(0, 18)}`;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: `${regarding.name.slice(0, LONGEST_NAME - suffix.length)}${suffix}`,
      namespace: regarding.namespace ?? "default",
    },
    involvedObject: regarding,
    type,
    reason,
    message,
    source: { component: report.component, host: report.host },
    reportingComponent: report.component,
    reportingInstance: report.host,
    count: report.count,
    firstTimestamp: new Date(report.firstAt).toISOString(),
    lastTimestamp: new Date(report.lastAt).toISOString(),
  };
}
