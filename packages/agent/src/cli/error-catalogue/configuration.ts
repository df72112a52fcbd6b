import type { CatalogueEntries } from "./entry.ts";

/** NK10xx: the configuration file, flags and environment variables. */
export const configurationErrors: CatalogueEntries = {
  NK1001: {
    title: "The configuration is refused",
    cause:
      "The file can't be read or is not YAML, a setting is unknown or misspelt, or a value is outside of its range. The message has one line for each problem, with the file and line, flag or variable it comes from.",
    remedy:
      "Correct what the lines name; `docs/configuration.md` has every setting with its default and what is expected. Try a file with `nodekeeper config validate FILE` before it is rolled out. A running agent keeps its old configuration.",
  },
  NK1002: {
    title: "No in-tree plugin or policy has this name",
    cause:
      "An entry of `eviction.inTreePlugins`, `reporting.inTreePlugins` or `eviction.policies.enabled` names no plugin of this version and no policy.",
    remedy:
      'Take a name from the list in the message. `"*"` enables those that are on by default, `"-name"` disables one.',
  },
  NK1003: {
    title: "A device zone of the kubelet reporter is refused",
    cause:
      "An entry of `reporting.kubelet.deviceZones` is not `resource=ZoneType`, or one resource has two zone types.",
    remedy:
      "Write each resource once, such as `nvidia.com/gpu=GPU`. `Socket` and `Numa` are the zones of the tree itself.",
  },
  NK1004: {
    title: "A setting has no effect as it is combined with others",
    cause: "The configuration is valid, but one setting makes another unused. The message names both.",
    remedy: "Remove the setting that is not used, or correct the one that makes it unused.",
  },
  NK1005: {
    title: "Changed settings need a restart",
    cause:
      "The configuration file was changed in settings that a running agent does not take over. The others are in effect.",
    remedy:
      "Restart the agent for those that the line names. `docs/configuration.md` marks the settings that are taken over live.",
  },
  NK1006: {
    title: "A directory is not watched for changes",
    cause: "The limit of inotify instances or watches of the node is reached, or the directory was removed.",
    remedy:
      "Raise `fs.inotify.max_user_instances` and `fs.inotify.max_user_watches` on the node. Until then changes are found by the periodic check, some seconds later.",
  },
  NK1010: {
    title: "A policy file is refused",
    cause:
      "The file can't be read or is not YAML, a field is unknown or missing, or a CEL expression has a mistake. The message has file, line and column. The same holds for the scene of `nodekeeper policy test`.",
    remedy:
      "Correct the place in the message; the other policies run on. `nodekeeper policy test FILE` checks a file, also against recorded rounds, without an agent.",
  },
};
