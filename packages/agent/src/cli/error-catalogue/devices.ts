import type { CatalogueEntries } from "./entry.ts";

/** NK15xx: drivers, their devices and ResourceSlices, and the preparation of ResourceClaims. */
export const deviceErrors: CatalogueEntries = {
  NK1501: {
    title: "The API server serves no ResourceSlices or ResourceClaims",
    cause:
      "Dynamic resource allocation is switched off, or the cluster is older than 1.30. Drivers stay connected, and nothing is published.",
    remedy:
      "Upgrade to 1.34 or later, where it is on by default, or enable the feature gate DynamicResourceAllocation and the API group `resource.k8s.io`.",
  },
  NK1502: {
    title: "A driver's stream of devices fails",
    cause:
      "The driver ended the stream or did not answer; or a message breaks the protocol: both pools and a delta, a delta for a pool that does not exist, more devices or changes than are accepted.",
    remedy:
      "Look at the driver's log; the agent's log names it and the reason. The stream is started again, and the driver sends its whole state. What it sent last stays published.",
  },
  NK1503: {
    title: "Devices are quarantined",
    cause:
      "A device breaks a rule of ResourceSlices (name, attributes, capacity, counters), or the API server rejects it. The driver's other devices are published.",
    remedy:
      "`nodekeeper devices` names each device with its field. Correct the driver; a changed device is tried at once.",
  },
  NK1504: {
    title: "ResourceSlices are not as planned",
    cause:
      "Another client writes the driver's slices as well: a second agent with the same node name, or the driver itself.",
    remedy:
      "Let only the agent publish slices of drivers that stream to it; check `nodeName`. It is tried again.",
  },
  NK1505: {
    title: "A driver does not report the health of its devices",
    cause: "The stream of health ended or broke, or the driver reports more devices than are accepted.",
    remedy:
      "Look at the driver's log. The stream is started again; until then the kubelet has the health of these devices as unknown.",
  },
  NK1506: {
    title: "A ResourceClaim can't be prepared as it is",
    cause:
      "The claim was deleted and created again, is not allocated, has no devices of the driver, or the agent may not read it.",
    remedy:
      "`kubectl describe resourceclaim` shows the allocation. For a missing right, apply `deploy/rbac-optional.yaml`. The kubelet asks again.",
  },
  NK1507: {
    title: "A driver's answer to a preparation is refused",
    cause:
      "The driver left out a device of the claim, named one that is not in it, or its edits of the container are not valid or not allowed.",
    remedy:
      "Correct the driver: the message names the device and the field, and `docs/devices.md` the rules. The pod starts as soon as a preparation succeeds.",
  },
  NK1508: {
    title: "A driver does not prepare or unprepare a claim",
    cause: "The driver is not connected, did not answer within its deadline, or answered with an error.",
    remedy: "Look at the driver's log; the message has its answer. The kubelet asks again.",
  },
  NK1509: {
    title: "The agent is not the kubelet's plugin for a driver",
    cause:
      "The kubelet refused the registration, has not found the socket, or the socket can't be served below `devices.kubeletPlugin.registryDirectory`.",
    remedy:
      "Mount the kubelet's directories into the agent's container at the same paths. Another plugin with the driver's name must not be registered with the kubelet.",
  },
  NK1510: {
    title: "A CDI file or the record of a claim can't be written or was changed",
    cause:
      "`devices.kubeletPlugin.cdiDirectory` can't be read or written, or another process removed or changed a file of the agent in it.",
    remedy:
      "Correct the directory's mount, owner and free space. Let no other process clean it: the agent removes its files itself.",
  },
  NK1511: {
    title: "The API server drops fields of ResourceSlices",
    cause:
      "Feature gates of dynamic resource allocation are off (partitionable devices, consumable capacity, device taints), so that devices which need them are published without them or not at all.",
    remedy:
      "Enable the features in the log line on kube-apiserver, kube-scheduler and kubelet, where the devices need them.",
  },
  NK1512: {
    title: "A ResourceClaim has ended and the kubelet did not unprepare it",
    cause:
      "The kubelet lost its own record of the claim, for example because its directory was emptied. No running pod uses the claim's devices.",
    remedy:
      "Nothing, if it passes: the agent unprepares the claim. If it stays, the message has the answer of the driver or the API server.",
  },
};
