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
  NK1010: {
    title: "A policy file is refused",
    cause:
      "The file can't be read or is not YAML, a field is unknown or missing, or a CEL expression has a mistake. The message has file, line and column. The same holds for the scene of `nodekeeper policy test`.",
    remedy:
      "Correct the place in the message; the other policies run on. `nodekeeper policy test FILE` checks a file, also against recorded rounds, without an agent.",
  },
};
