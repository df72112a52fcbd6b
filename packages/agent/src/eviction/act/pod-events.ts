import type { EventRecorder } from "@nodekeeper/core/kube";

/** Events as they are recorded, but those about pods name the node: a pod's Events outlive its place on it. */
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
