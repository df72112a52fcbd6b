import { KUBELET_REPORTER_NAME } from "./kubelet/kubelet-reporter.ts";
import { SYSTEM_REPORTER_NAME } from "./system-reporter.ts";

/** The names of all in-tree reporters, as used in `reporting.inTreePlugins`. */
export const inTreeReporterNames = [SYSTEM_REPORTER_NAME, KUBELET_REPORTER_NAME] as const;

export type InTreeReporterName = (typeof inTreeReporterNames)[number];
