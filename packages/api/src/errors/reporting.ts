import { declareError, declareProblem } from "./declare.ts";

// NK18xx: reporter plugins and what is published of their reports.

export const ReportTooLarge = declareProblem({
  id: "NK1801",
  title: "A report is too large to be published",
  cause:
    "The plugin's report is new or has grown, and the object with it would exceed the limit of etcd. Its last good content stays published. Reports that have not grown are not affected.",
  remedy:
    "Reduce what this plugin or another one reports. The message has the size of the report, the limit, and the remaining size.",
});

export const ReportQuarantined = declareProblem({
  id: "NK1802",
  title: "A report is quarantined",
  cause:
    "The API server rejects the object with this plugin's content. The last good content stays published, and other plugins are not affected.",
  remedy:
    "The message has the server's response and the field. Correct the plugin; new content is tried within a minute.",
});

export const ReportRefused = declareError({
  id: "NK1803",
  code: "exhausted",
  message: "the message has more than {limit} contents and fields",
  title: "A report is invalid",
  cause:
    "A field is not valid JSON, has a path that plugins may not write, or has too many parts. Its other fields are published.",
  remedy: "`nodekeeper plugins list` shows the field and the reason. `docs/plugin-authors.md` has the rules.",
});

export const KindNotPublishable = declareError({
  id: "NK1804",
  code: "invalid",
  message: "{object} is namespaced; only cluster-scoped kinds can be published",
  title: "The kind can't be published to",
  cause: "An entry of `reporting.additionalKinds` is namespaced. Only cluster-scoped kinds can be published.",
  remedy: "Remove the entry, or define the kind with `scope: Cluster`.",
});

export const ReporterNotResponding = declareProblem({
  id: "NK1805",
  title: "A reporter plugin does not respond",
  cause:
    "GetReportContent had no response within `reporting.callTimeout`, or it or the stream failed with the plugin's error. The last content stays published.",
  remedy: "Check the plugin's log. The agent calls it again every `reporting.collectInterval`.",
});

export const MachineUnreadable = declareProblem({
  id: "NK1806",
  title: "The machine's files can't be read",
  cause: "`hostRoot` does not contain the node's `/proc` and `/sys`.",
  remedy: "Mount the node's root into the agent's container and set `hostRoot` to it.",
});

export const PublishedFieldContested = declareProblem({
  id: "NK1807",
  title: "Another client writes a published field",
  cause:
    "A field that a plugin reports is also written by the client in the message. The agent restores its value.",
  remedy:
    "Only one of them may write the field: stop the other client, or remove the field from the plugin's report.",
});

export const ReporterDisconnected = declareProblem({
  id: "NK1808",
  title: "A reporter plugin disconnected",
  cause:
    "Its process exited, its socket was removed, or it has not registered since the agent started. Its content stays published for `reporting.pluginGracePeriod`, and is then withdrawn.",
  remedy:
    "Start the plugin again before the grace period ends; its log shows why it exited. Its content is published again as soon as it registers.",
});

export const FieldsWithoutReporter = declareProblem({
  id: "NK1809",
  title: "No plugin reports fields that an earlier agent published",
  cause:
    "After a restart or an upgrade, no plugin reports some of the published fields. They stay for the grace period and are then removed.",
  remedy: "To keep them, start the plugin that reports them. Otherwise, no action is needed.",
});

export const KubeletResourcesOmitted = declareProblem({
  id: "NK1810",
  title: "Some resources of the kubelet are not reported",
  cause:
    "The kubelet's PodResources API lists resources that match neither the machine nor a pod, or its configuration file (`reporting.kubelet.configFile`) can't be read. Everything else is reported.",
  remedy:
    "The log line lists them. In a container, mount the file (`hostPaths.kubeletConfig` of the chart). If the topology policy is not needed, set `reporting.kubelet.configFile` to an empty string.",
});
