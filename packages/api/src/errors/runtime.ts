import { declareError, declareProblem } from "./declare.ts";

// NK14xx: the container runtime.

export const RuntimeNotFound = declareError({
  id: "NK1401",
  code: "unavailable",
  message: "no container runtime found at {places}; set runtime.endpoint",
  title: "No container runtime was found",
  cause:
    "`runtime.endpoint` is empty, and no process listens on the default sockets of containerd, CRI-O and cri-dockerd. The message has the result for each.",
  remedy:
    "Set `runtime.endpoint` to the socket, and mount it into the agent's container. If the node has no runtime on purpose, set `lifecycle.enabled: false`.",
});

export const RuntimeEndpointInvalid = declareError({
  id: "NK1402",
  code: "invalid",
  message: "runtime endpoint {endpoint} must be unix:///path or an absolute path",
  title: "The runtime's endpoint is not a socket",
  cause: "`runtime.endpoint` is not `unix:///path` or an absolute path.",
  remedy: "Use the value of the kubelet's `containerRuntimeEndpoint`.",
});

export const RuntimeUnreachable = declareProblem({
  id: "NK1403",
  title: "The container runtime can't be reached",
  cause:
    "The runtime is down or restarting, or its socket is not mounted into the agent's container. The last known state of pods is kept.",
  remedy:
    "Check the runtime's service (`crictl info`). If it responds, compare the socket's path with the agent's mounts: mount the directory, not the file.",
});

export const RuntimeNotResponding = declareError({
  id: "NK1404",
  code: "unavailable",
  title: "The container runtime does not respond",
  cause: "The process accepts connections but does not respond in time: it hangs or is overloaded.",
  remedy:
    "Check the runtime's log and the node's disk pressure. `runtime.requestTimeout` is the deadline of a call.",
});

export const RuntimeVersionUnsupported = declareError({
  id: "NK1405",
  code: "unsupported",
  message: "Version: runtime {name} {version} has CRI version {apiVersion}; required: {required}",
  title: "The container runtime has another version of CRI",
  cause: "The runtime does not serve `runtime.v1`: containerd before 1.6 or CRI-O before 1.20.",
  remedy: "Upgrade the runtime. containerd 1.7 or later is recommended: it sends container events.",
});

export const RuntimeAnswerTooLarge = declareError({
  id: "NK1406",
  code: "exhausted",
  title: "A response of the container runtime is too large",
  cause:
    "The node has more containers than `runtime.maxMessageSize` or the agent's limit on listed items allows.",
  remedy: "Raise `runtime.maxMessageSize`; remove exited containers (kubelet's `--maximum-dead-containers`).",
});

export const PodNotInspectable = declareError({
  id: "NK1407",
  code: "unavailable",
  title: "A pod can't be inspected",
  cause:
    "The runtime lists the pod, but does not return its status, or one that contradicts the list. Other pods are not affected.",
  remedy:
    "`nodekeeper pods -o json` shows the call that hangs; search the runtime's log for the container ID.",
});

export const PodsNotKnown = declareError({
  id: "NK1408",
  code: "unavailable",
  message: "{reason}",
  title: "Pods are not known yet",
  cause: "The agent has not listed the runtime's pods since it started.",
  remedy: "Wait for the first list. If it fails, the message has the runtime's last error.",
});

export const PodResourcesUnreadable = declareProblem({
  id: "NK1409",
  title: "The kubelet's PodResources API can't be read",
  cause:
    "The kubelet is down, its socket is not mounted into the agent's container, or its response is too large. The last content stays published.",
  remedy: "Mount the directory of `reporting.kubelet.podResourcesSocket`, and check that the kubelet runs.",
});
