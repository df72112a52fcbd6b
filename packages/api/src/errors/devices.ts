import { declareError, declareProblem } from "./declare.ts";

// NK15xx: drivers, their devices and ResourceSlices, and the preparation of ResourceClaims.

export const ResourceApiNotServed = declareError({
  id: "NK1501",
  code: "unsupported",
  title: "The API server serves no ResourceSlices or ResourceClaims",
  cause:
    "Dynamic resource allocation is disabled, or the cluster is older than 1.30. Drivers stay connected, and nothing is published.",
  remedy:
    "Upgrade to 1.34 or later, where it is on by default, or enable the feature gate DynamicResourceAllocation and the API group `resource.k8s.io`.",
});

export const DeviceStreamFailed = declareError({
  id: "NK1502",
  code: "invalid",
  title: "A driver's stream of devices fails",
  cause:
    "The driver ended the stream or did not respond, or a message can't be decoded or is larger than `devices.maxMessageSize`.",
  remedy:
    "Check the driver's log; the agent's log has the driver and the reason. The agent opens the stream again, and the driver sends its whole state. The last state stays published.",
});

export const DevicesQuarantined = declareProblem({
  id: "NK1503",
  title: "Devices are quarantined",
  cause:
    "A device breaks a rule of ResourceSlices (name, attributes, capacity, counters), or the API server rejects it. The driver's other devices are published.",
  remedy:
    "`nodekeeper devices` names each device with its field. Correct the driver; a changed device is published at once.",
});

export const SlicesNotAsPlanned = declareError({
  id: "NK1504",
  code: "conflict",
  title: "ResourceSlices differ from the driver's devices",
  cause:
    "Another client also writes the driver's slices: a second agent with the same node name, or the driver itself.",
  remedy:
    "Let only the agent publish slices of drivers that stream to it; check `nodeName`. The agent retries.",
});

export const DeviceHealthNotReported = declareProblem({
  id: "NK1505",
  title: "A driver does not report the health of its devices",
  cause:
    "The health stream ended or failed, or the driver reports more devices than the agent accepts. If the message names a device, only that entry is refused, or the effect of its taint.",
  remedy:
    "Check the driver's log. The agent opens the stream again; until then, the kubelet reports the health of these devices as unknown.",
});

export const ClaimNotPreparable = declareError({
  id: "NK1506",
  code: "conflict",
  title: "A ResourceClaim can't be prepared",
  cause:
    "The claim was deleted and created again, is not allocated, has no devices of the driver, or the agent may not read it.",
  remedy:
    "`kubectl describe resourceclaim` shows the allocation. If a permission is missing, apply `deploy/rbac-optional.yaml`. The kubelet retries.",
});

export const DriverAnswerRefused = declareError({
  id: "NK1507",
  code: "invalid",
  title: "A driver's response to a preparation is invalid",
  cause:
    "The driver left out a device of the claim, named one that is not in it, or its container edits are invalid or not allowed.",
  remedy:
    "Correct the driver: the message names the device and the field; `docs/devices.md` has the rules. The pod starts as soon as a preparation succeeds.",
});

export const DriverFailed = declareError({
  id: "NK1508",
  code: "unavailable",
  message: "driver {driver}: {problem}",
  title: "A driver does not prepare or unprepare a claim",
  cause: "The driver is not connected, did not respond within its deadline, or returned an error.",
  remedy: "Check the driver's log; the message has its response. The kubelet retries.",
});

export const DriverNotRegistered = declareProblem({
  id: "NK1509",
  title: "The agent is not the kubelet's plugin for a driver",
  cause:
    "The kubelet refused the registration or did not find the socket, or the socket can't be served below `devices.kubeletPlugin.registryDirectory`.",
  remedy:
    "Mount the kubelet's directories into the agent's container at the same paths. Another plugin with the driver's name must not be registered with the kubelet.",
});

export const ClaimNotRecorded = declareError({
  id: "NK1510",
  code: "unavailable",
  title: "A CDI file or the record of a claim can't be written or was changed",
  cause:
    "`devices.kubeletPlugin.cdiDirectory` can't be read or written, or another process removed or changed a file of the agent in it.",
  remedy:
    "Correct the directory's mount, owner and free space. Exclude it from cleanup jobs: the agent removes its files itself.",
});

export const SliceFieldsDropped = declareProblem({
  id: "NK1511",
  title: "The API server drops fields of ResourceSlices",
  cause:
    "Feature gates of dynamic resource allocation are off, or the server is older than the features. A device is not published if its allocation depends on the field (taints, counters, binding conditions, shares, resources of the node); otherwise it is published without the field.",
  remedy:
    "`nodekeeper devices DRIVER` names each field and its feature. Enable the features on kube-apiserver, kube-scheduler and kubelet, or let the driver report the devices without them.",
});

export const EndedClaimPrepared = declareProblem({
  id: "NK1512",
  title: "A ResourceClaim has ended and the kubelet did not unprepare it",
  cause:
    "The kubelet lost its own record of the claim, for example because its directory was emptied. No running pod uses the claim's devices.",
  remedy:
    "None if it passes: the agent unprepares the claim. If it persists, the message has the response of the driver or the API server.",
});

export const HostPathNotTrusted = declareError({
  id: "NK1513",
  code: "invalid",
  title: "Users other than root can change a host path in a driver's edits",
  cause:
    "A directory, link or file in the path of a mount's source, a device or a hook does not belong to root, or others can write it. Its owner could redirect the path after the check, for example to `/etc/shadow`, or replace a program that the runtime runs as root.",
  remedy:
    "Change the owner of the component in the message to root and run `chmod go-w` on it, or use files elsewhere. `devices.kubeletPlugin.exemptRootDrivers` exempts drivers whose sockets belong to root. The kubelet retries; a CDI file that was removed is written again when its paths are correct.",
});

export const ClaimInUse = declareError({
  id: "NK1514",
  code: "conflict",
  title: "A ResourceClaim's devices are still in use",
  cause:
    "A container of a pod of the claim has not ended according to the container runtime, or the runtime can't be read: for example the pod was deleted with `--force`. With `lifecycle.enabled: false` the agent does not read the runtime, and a device is free only when the kubelet has unprepared the claim.",
  remedy:
    "None if it passes: when the container has ended, the devices are unprepared and the next claim is prepared. The message names the pod, container and devices; `crictl ps` shows the container, and a container that does not end needs a restart of the runtime or the machine.",
});

export const DeviceClaimedTwice = declareError({
  id: "NK1515",
  code: "conflict",
  title: "Two ResourceClaims have one device",
  cause:
    "Both exist and are allocated the same device, neither with `adminAccess` nor as a share of it: a client other than the scheduler wrote the status of a claim, or two schedulers allocate.",
  remedy:
    "Delete the pod of one of them together with the claim. The claim that was prepared first keeps the device; the other one is prepared when it is free.",
});

export const DriverNotResponding = declareProblem({
  id: "NK1516",
  title: "A driver does not respond",
  cause:
    "The driver's process is stopped, hangs or has ended: it does not acknowledge HTTP/2 frames on its socket within 2.5 s, or does not listen.",
  remedy:
    "Check the driver's process and its log. Its devices are tainted after `devices.taintDelay`; the taint is removed when the driver responds.",
});

export const SlicesNotWritten = declareProblem({
  id: "NK1517",
  title: "ResourceSlices can't be written",
  cause:
    "The API server refuses a slice of a driver for a reason that concerns no single device, as an admission webhook or a quota may, or does not respond. Slices that were written before stay.",
  remedy:
    "`nodekeeper devices <driver>` shows each slice with the server's message. The agent tries again with growing delays.",
});

export const DeviceStatusRefused = declareProblem({
  id: "NK1520",
  title: "The status of devices that a driver reports is refused",
  cause:
    "The driver ended the stream, or reported a device that is not allocated to the claim, a claim that is not prepared, or a field that breaks a rule of `ResourceClaim.status.devices`. The status of its other devices is written.",
  remedy:
    "Correct the driver: the message names the claim, the device and the field; `docs/devices.md` has the rules.",
});

export const DeviceStatusNotWritten = declareError({
  id: "NK1521",
  code: "forbidden",
  title: "The status of devices can't be written to a ResourceClaim",
  cause:
    "The agent lacks a permission, the feature gate DRAResourceClaimDeviceStatus of kube-apiserver is off, another client owns a field of the device's status, or `devices.kubeletPlugin.deviceStatus` is `false`. Pods run nevertheless.",
  remedy:
    "Set `devices.kubeletPlugin.deviceStatus` in the chart, or apply `deploy/rbac-optional.yaml`. From Kubernetes 1.36 on, the verb `associated-node:patch` on `resourceclaims/driver` only counts for an agent with a service account token of a pod on the claim's node; one with another identity needs `arbitrary-node:patch`. The agent retries every five minutes.",
});
