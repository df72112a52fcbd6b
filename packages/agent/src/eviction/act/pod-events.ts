import type { EventRecorder } from "@nodekeeper/core/kube";

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
