import type { CatalogueEntries } from "./entry.ts";

/** NK18xx: reporter plugins and what is published of their reports. */
export const reportingErrors: CatalogueEntries = {
  NK1801: {
    title: "A report is too large to be published",
    cause:
      "The plugin's report is new or has grown, and with it the object would be larger than etcd takes. Its last known good content stays published. Reports that have not grown are not affected.",
    remedy:
      "Let the plugin, or another one, report less. The message has the size of the report, the limit, and what is left for it.",
  },
  NK1802: {
    title: "A report is quarantined",
    cause:
      "The API server refuses the object with this plugin's content. The last good content stays published, and other plugins are not affected.",
    remedy:
      "The message has the server's words and the field. Correct the plugin; new content is tried after a minute at most.",
  },
  NK1803: {
    title: "A report is refused",
    cause:
      "A field has no valid JSON, a path that plugins may not write, or more parts than are taken. Its other fields are published.",
    remedy: "`nodekeeper plugins list` names field and reason. `docs/plugin-authors.md` has the rules.",
  },
  NK1804: {
    title: "The kind can't be published to",
    cause:
      "An entry of `reporting.additionalKinds` is namespaced. Only cluster-scoped kinds can be published.",
    remedy: "Remove the entry, or define the kind with `scope: Cluster`.",
  },
  NK1805: {
    title: "A reporter plugin does not answer",
    cause:
      "GetReportContent had no answer within `reporting.callTimeout`, or the stream broke. The last content stays published.",
    remedy: "Look at the plugin's log; it is asked again every `reporting.collectInterval`.",
  },
  NK1806: {
    title: "Nothing of the machine can be read",
    cause: "`hostRoot` has no `/proc` and `/sys` of the node.",
    remedy: "Mount the node's root into the agent's container and set `hostRoot` to it.",
  },
  NK1807: {
    title: "Another client writes a published field",
    cause:
      "A field that a plugin reports is also written by the client in the message. The agent restores its value.",
    remedy:
      "Let one of them write the field: stop the other client, or remove the field from the plugin's report.",
  },
  NK1808: {
    title: "A reporter plugin disconnected",
    cause:
      "Its process exited, its socket was removed, or it has not registered since the agent started. Its content stays published for `reporting.pluginGracePeriod`, and is withdrawn then.",
    remedy:
      "Start the plugin again before the grace period ends; its log has why it exited. Its content is published again as soon as it has registered again.",
  },
  NK1809: {
    title: "Fields of an earlier agent that no plugin reports",
    cause:
      "After a restart or an upgrade, published fields have no plugin that reports them. They stay for the grace period, and are removed then.",
    remedy: "If they should stay, start the plugin that reports them. Otherwise nothing has to be done.",
  },
  NK1810: {
    title: "Some resources of the kubelet are not reported",
    cause:
      "The kubelet's PodResources API lists what can't be matched with the machine or a pod, or its configuration file (`reporting.kubelet.configFile`) can't be read. Everything else is reported.",
    remedy:
      "The line names each. In a container mount the file: `hostPaths.kubeletConfig` of the chart. Where the topology policy is not needed, set `reporting.kubelet.configFile` to nothing.",
  },
};
