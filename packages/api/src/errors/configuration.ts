import { declareError, declareProblem } from "./declare.ts";

// NK10xx: the configuration file, flags and environment variables.

export const ConfigurationRefused = declareError({
  id: "NK1001",
  code: "invalid",
  message: "the configuration has {count}:{problems}",
  title: "The configuration is invalid",
  cause:
    "The file can't be read or is not YAML, a setting or a NODEKEEPER_ variable is unknown or misspelt, or a value is out of range. The message has one line per problem, with the file and line, flag or variable that set the value.",
  remedy:
    "Correct the settings that the message names; `docs/configuration.md` lists every setting with its default and its valid values. Check a file with `nodekeeper config validate FILE` before you roll it out. A running agent keeps its previous configuration, and one that starts uses the last good file if its state directory has it; neither is ready until the file is corrected.",
});

export const PolicyUnknown = declareProblem({
  id: "NK1002",
  title: "No policy has this name",
  cause: "An entry of `eviction.policies.enabled` names no policy of `eviction.policies.files`.",
  remedy: 'Correct the name. `"*"` enables all policies, `"-name"` disables one.',
});

export const DeviceZoneRefused = declareError({
  id: "NK1003",
  code: "invalid",
  message: "device zone {entry}: {problem}",
  title: "A device zone of the kubelet reporter is invalid",
  cause:
    "An entry of `reporting.kubelet.deviceZones` is not `resource=ZoneType`, or one resource has two zone types.",
  remedy:
    "Write each resource once, such as `nvidia.com/gpu=GPU`. `Socket` and `Numa` are reserved for the zones of the topology itself.",
});

export const SettingUnused = declareProblem({
  id: "NK1004",
  title: "A setting has no effect in combination with others",
  cause: "The configuration is valid, but one setting makes another unused. The message names both.",
  remedy: "Remove the unused setting, or correct the one that makes it unused.",
});

export const RestartNeeded = declareProblem({
  id: "NK1005",
  title: "Changed settings need a restart",
  cause:
    "The configuration file has changes in settings that a running agent does not apply. Changes of other settings are in effect.",
  remedy:
    "Restart the agent to apply the settings that the log line names. `docs/configuration.md` marks the settings that are applied without a restart.",
});

export const DirectoryNotWatched = declareProblem({
  id: "NK1006",
  title: "A directory is not watched for changes",
  cause: "The node's limit of inotify instances or watches is reached, or the directory was removed.",
  remedy:
    "Raise `fs.inotify.max_user_instances` and `fs.inotify.max_user_watches` on the node. Until then, the periodic check finds changes some seconds later.",
});

export const PolicyRefused = declareError({
  id: "NK1010",
  code: "invalid",
  title: "A policy file is invalid",
  cause:
    "The file can't be read or is not YAML, a field is unknown or missing, or a CEL expression has an error. The message has the file, line and column. The same applies to the scene file of `nodekeeper policy test`.",
  remedy:
    "Correct the file at the place in the message; other policies stay in effect. `nodekeeper policy test FILE` checks a file without an agent, also against recorded rounds.",
});
