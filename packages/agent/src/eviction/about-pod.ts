import type { PodReference } from "@nodekeeper/api/decide";
import type { EventRecorder, ObjectReference } from "@nodekeeper/core/kube";

/** Returns the reference to a pod for an Event. */
export function aboutPod({ uid, namespace, name }: PodReference): ObjectReference {
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid };
}

/** Adds the node's name to Events about pods: Events outlive the pod. */
export function namingNode(
  events: Pick<EventRecorder, "record">,
  nodeName: string,
): Pick<EventRecorder, "record"> {
  return {
    record(event) {
      const isOfPod = event.regarding.kind === "Pod";
      events.record(isOfPod ? { ...event, message: `${event.message} (node ${nodeName})` } : event);
    },
  };
}
