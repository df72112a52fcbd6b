import { boolean, byteSize, duration, path, paths, text, textList } from "./leaf.ts";
import { section } from "./section.ts";

/** `devices`: drivers, their ResourceSlices, and claims for their devices. */
export const devicesSection = section(
  "Device drivers and the ResourceSlices their devices are published in.",
  {
    wipeDelay: duration("30s", "0s", "1h", {
      about: "How long the ResourceSlices of a disconnected driver are kept.",
      applied: "live",
    }),
    taintDelay: duration("3s", "0s", "1h", {
      about:
        "How long after a driver disconnected or stopped answering its devices are tainted NoSchedule, until it is back or its ResourceSlices are deleted. No effect from wipeDelay on for a driver that disconnected.",
      applied: "live",
    }),
    settleTime: duration("30s", "0s", "1h", {
      about:
        "Startup grace period: how long after the agent's start drivers may take to reconnect before their ResourceSlices are deleted.",
    }),
    minWriteInterval: duration("200ms", "0s", "1m", {
      about: "Minimum interval between two writes of one driver's ResourceSlices.",
      applied: "live",
    }),
    maxMessageSize: byteSize("64Mi", "64Ki", "256Mi", { about: "Maximum size of a message from a driver." }),
    clusterPools: section(
      "Pools of devices beyond the node, such as those behind a switch. One agent publishes those of a driver, elected by a Lease.",
      {
        drivers: textList(
          [],
          {
            pattern: /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/,
            expected: "names of drivers",
            placeholder: "<driver,...>",
            maxItems: 16,
          },
          {
            about:
              "Drivers that may report such pools. It needs the right to get, create and update leases in leaseNamespace.",
          },
        ),
        leaseNamespace: text(
          "nodekeeper",
          {
            pattern: /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
            expected: "the name of a namespace",
            placeholder: "<namespace>",
          },
          { about: "Namespace of the Leases." },
        ),
      },
    ),
    kubeletPlugin: section("The kubelet's DRA plugin in place of drivers that stream their devices.", {
      enabled: boolean(false, {
        about:
          "Whether the agent prepares allocated devices for pods. It needs the right to get resourceclaims, and to get pods for their service accounts.",
      }),
      deviceStatus: boolean(false, {
        about:
          "Whether the status that drivers report of allocated devices is written to ResourceClaims. It needs the right to patch resourceclaims/status and, from Kubernetes 1.36 on, associated-node:patch on resourceclaims/driver; for devices with binding conditions, to list and watch pods and resourceclaims. Before 1.36, the first includes allocations.",
      }),
      registryDirectory: path("/var/lib/kubelet/plugins_registry", {
        about:
          "The kubelet's directory of plugin sockets. The kubelet and the agent must see it under the same path.",
      }),
      cdiDirectory: path("/var/run/cdi", {
        about: "Directory in which CDI files are written; one of those that the container runtime reads.",
      }),
      metadata: boolean(false, {
        about:
          "Whether containers get the metadata of their devices as files (KEP-5304): the claim, and the attributes that the driver reports. Then the kubelet also calls the agent for drivers whose devices need no preparation.",
      }),
      metadataDirectory: path("/var/lib/nodekeeper/device-metadata", {
        about:
          "Directory in which the metadata of prepared devices is written. The container runtime must see it under the same path. Change it on a drained node: the CDI files of prepared claims name the old one, which the agent no longer cleans up.",
      }),
      callTimeout: duration("40s", "100ms", "10m", {
        about:
          "Timeout of a driver's PrepareDevices, UnprepareDevices and RestoreClaims. The kubelet's own timeout is 45 s.",
        applied: "live",
      }),
      hostPaths: paths(["/"], 0, 64, {
        about:
          "Directories on the host that the container edits of drivers may refer to. Network interfaces are permitted by their path, such as /sys/class/net/eth1.",
      }),
      exemptRootDrivers: boolean(false, {
        about:
          "Whether drivers whose sockets belong to root may refer to paths on the host that others than root can change. By default each directory, link and file on the way must belong to root and be writable by root alone.",
      }),
    }),
  },
);
