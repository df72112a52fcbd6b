import type { CatalogueEntries } from "./entry.ts";

/** NK14xx: the container runtime. */
export const runtimeErrors: CatalogueEntries = {
  NK1401: {
    title: "No container runtime was found",
    cause:
      "`runtime.endpoint` is empty, and no process listens at the usual places of containerd, CRI-O and cri-dockerd. The message has what was found at each.",
    remedy:
      "Set `runtime.endpoint` to the socket, and mount it into the agent's container. Without a runtime on purpose, set `lifecycle.enabled: false`.",
  },
  NK1402: {
    title: "The runtime's endpoint is no socket",
    cause: "`runtime.endpoint` is not `unix:///path` or an absolute path.",
    remedy: "Use the value of the kubelet's `containerRuntimeEndpoint`.",
  },
  NK1403: {
    title: "The container runtime can't be reached",
    cause:
      "The runtime is down or restarting, or its socket is not mounted into the agent's container. Pods stay as they were last known.",
    remedy:
      "Check the runtime's service (`crictl info`). If it answers there, compare the socket's path with the agent's mounts: mount the folder, not the file.",
  },
  NK1404: {
    title: "The container runtime does not answer",
    cause: "The process accepts connections and answers no call in time: it hangs or is overloaded.",
    remedy:
      "Look at the runtime's log and at the node's disk pressure. `runtime.requestTimeout` is the deadline of a call.",
  },
  NK1405: {
    title: "The container runtime speaks another version of CRI",
    cause: "The runtime does not serve `runtime.v1`: containerd before 1.6 or CRI-O before 1.20.",
    remedy: "Upgrade the runtime. containerd 1.7 or later is recommended: it sends container events.",
  },
  NK1406: {
    title: "An answer of the container runtime is too large",
    cause:
      "The node has more containers than `runtime.maxMessageSize` or the agent's limit on listed items allows.",
    remedy:
      "Raise `runtime.maxMessageSize`; remove exited containers (kubelet's `--maximum-dead-containers`).",
  },
  NK1407: {
    title: "A pod can't be inspected",
    cause:
      "The runtime lists the pod, and does not answer for it, or answers what contradicts the list. Other pods are not affected.",
    remedy:
      "`nodekeeper pods -o json` has the call that hangs; look for the container's id in the runtime's log.",
  },
  NK1408: {
    title: "Pods are not known yet",
    cause: "The agent has not listed the runtime's pods since it started.",
    remedy: "Wait for the first list. If it does not come, the message has the runtime's last error.",
  },
  NK1409: {
    title: "The kubelet's PodResources API can't be read",
    cause:
      "The kubelet is down, its socket is not mounted into the agent's container, or its answer is too large. The last content stays published.",
    remedy: "Mount the folder of `reporting.kubelet.podResourcesSocket`, and check that the kubelet runs.",
  },
};
