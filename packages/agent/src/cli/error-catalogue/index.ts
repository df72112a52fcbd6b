import type { ErrorId } from "@nodekeeper/core/lib";
import { configurationErrors } from "./configuration.ts";
import { deviceErrors } from "./devices.ts";
import type { CatalogueEntries, CatalogueEntry } from "./entry.ts";
import { evictionErrors } from "./eviction.ts";
import { kubeErrors } from "./kube.ts";
import { pluginErrors } from "./plugins.ts";
import { reportingErrors } from "./reporting.ts";
import { runtimeErrors } from "./runtime.ts";
import { serverErrors } from "./server.ts";
import { stateErrors } from "./state.ts";

export interface ErrorGroup {
  title: string;
  entries: CatalogueEntries;
}

/**
 * Every error that an operator can act on, by the ids that code attaches to errors, health results and log lines. An id
 * is stable: it is never given to another error. docs/errors.md is generated from this, and commands print it. A file of
 * its own in the published package, so that the agent does not keep these texts in memory.
 */
export const errorGroups: readonly ErrorGroup[] = [
  { title: "Configuration and policies", entries: configurationErrors },
  { title: "State directory", entries: stateErrors },
  { title: "API server", entries: kubeErrors },
  { title: "Registration of plugins", entries: pluginErrors },
  { title: "Container runtime and kubelet", entries: runtimeErrors },
  { title: "Devices and ResourceClaims", entries: deviceErrors },
  { title: "Eviction", entries: evictionErrors },
  { title: "Status server, local API and commands", entries: serverErrors },
  { title: "Reporting", entries: reportingErrors },
];

/** The entry of an id; undefined where the catalogue has none, as for an id of a newer agent. */
export function findEntry(id: ErrorId): CatalogueEntry | undefined {
  return errorGroups.find(({ entries }) => Object.hasOwn(entries, id))?.entries[id];
}
