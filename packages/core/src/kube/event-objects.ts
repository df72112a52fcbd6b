import { randomUUID } from "node:crypto";
import type { KubeObject, ObjectReference } from "./types.ts";

/** A core/v1 Event about an object, shown by `kubectl describe`. */
export interface EventInput {
  type: "Normal" | "Warning";
  /** Machine-readable reason in UpperCamelCase: "EvictionFailed". */
  reason: string;
  message: string;
  regarding: ObjectReference;
}

const LONGEST_MESSAGE_BYTES = 1_024;
const LONGEST_NAME = 253;

/**
 * Returns the reference to a Node for an Event. Like the kubelet's, it has the Node's name as the UID
 * (pkg/kubelet/kubelet.go, nodeRef), so that `kubectl describe` finds the Event.
 */
export function aboutNode(name: string): ObjectReference {
  return { apiVersion: "v1", kind: "Node", name, uid: name };
}

/** Returns the message, truncated to 1,024 bytes of UTF-8 at a character boundary. */
export function truncated(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= LONGEST_MESSAGE_BYTES) return message;
  let end = LONGEST_MESSAGE_BYTES - 3;
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return `${bytes.subarray(0, end).toString("utf8")}...`;
}

/** Returns a key that identifies the regarding object. */
export function objectKey({ regarding }: EventInput): string {
  const { apiVersion, kind, namespace, name, uid } = regarding;
  return JSON.stringify([apiVersion, kind, namespace, name, uid]);
}

/** Returns a key shared by repeats of an Event. */
export function eventKey(input: EventInput): string {
  return JSON.stringify([objectKey(input), input.type, input.reason, input.message]);
}

/**
 * Returns a new core/v1 Event. Events of cluster-scoped objects are in the namespace "default", where kubectl looks for
 * them.
 */
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
