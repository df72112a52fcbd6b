import { boolean, byteSize, duration, text, textList } from "./leaf.ts";
import { absolutePath } from "./patterns.ts";
import { section } from "./section.ts";

/** `devices`: drivers, their ResourceSlices, and the claims on their devices. */
export const devicesSection = section(
  "Device drivers and the ResourceSlices their devices are published in.",
  {
    wipeDelay: duration("30s", "0s", "1h", {
      about: "How long the ResourceSlices of a disconnected driver are kept.",
      applied: "live",
    }),
    taintDelay: duration("5s", "0s", "1h", {
      about:
        "How long after a driver disconnected its devices are tainted NoSchedule, until it reconnects or its ResourceSlices are deleted. No effect from wipeDelay on.",
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
    kubeletPlugin: section("The kubelet's DRA plugin in place of drivers that stream their devices.", {
      enabled: boolean(false, {
        about:
          "Whether the agent prepares allocated devices for pods. It needs the right to get resourceclaims.",
      }),
      registryDirectory: text(
        "/var/lib/kubelet/plugins_registry",
        { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" },
        {
          about:
            "The kubelet's folder of plugin sockets. The kubelet and the agent must see it under one path.",
        },
      ),
      cdiDirectory: text(
        "/var/run/cdi",
        { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" },
        {
          about:
            "Where CDI files are written; one of the folders that the container runtime reads them from.",
        },
      ),
      callTimeout: duration("40s", "100ms", "10m", {
        about:
          "Timeout of a driver's PrepareDevices and UnprepareDevices. The kubelet's own timeout is 45 s.",
        applied: "live",
      }),
      hostPaths: textList(
        ["/"],
        {
          pattern: absolutePath,
          expected: "absolute paths",
          placeholder: "<path,...>",
          minItems: 0,
          maxItems: 64,
        },
        { about: "Folders on the host that the container edits of drivers may refer to." },
      ),
    }),
  },
);
