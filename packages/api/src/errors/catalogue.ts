import * as archive from "./archive.ts";
import * as configuration from "./configuration.ts";
import type { Problem } from "./declare.ts";
import * as devices from "./devices.ts";
import * as eviction from "./eviction.ts";
import * as kube from "./kube.ts";
import * as plugins from "./plugins.ts";
import * as reporting from "./reporting.ts";
import * as runtime from "./runtime.ts";
import * as server from "./server.ts";
import * as state from "./state.ts";

export interface ProblemGroup {
  title: string;
  /** By the names under which code imports them. */
  problems: Readonly<Record<string, Problem>>;
}

/**
 * All declared errors and problems, from which docs/errors.md is generated. The page loads them when it shows the first
 * remedy.
 */
export const problemGroups: readonly ProblemGroup[] = [
  { title: "Configuration and policies", problems: configuration },
  { title: "State directory", problems: state },
  { title: "API server", problems: kube },
  { title: "Registration of plugins", problems: plugins },
  { title: "Container runtime and kubelet", problems: runtime },
  { title: "Devices and ResourceClaims", problems: devices },
  { title: "Eviction", problems: eviction },
  { title: "Status server, local API and commands", problems: server },
  { title: "Reporting", problems: reporting },
  { title: "Archive", problems: archive },
];
