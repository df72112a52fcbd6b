import type { Leaf } from "./leaf.ts";
import type { Section } from "./section.ts";

/** One setting with its name in each source. */
export interface Setting extends Leaf<unknown> {
  /** Path in the YAML file: "reporting.collectInterval". */
  readonly path: string;
  /** Flag without dashes: "reporting-collect-interval"; undefined if the setting has no flag. */
  readonly flagName: string | undefined;
  /** Key of the flag in parsed options: "reportingCollectInterval". */
  readonly optionKey: string | undefined;
  /** Environment variables; the first that is set is used. */
  readonly envNames: readonly string[];
  /** Whether a reload applies a changed value. */
  readonly isLive: boolean;
  /** The section that it is in; its path is empty for the outermost. */
  readonly section: { readonly path: string; readonly about: string };
}

/** Whether a node of the schema is a section, not a setting. */
export function isSection(node: Leaf<unknown> | Section): node is Section {
  return !("isLeaf" in node);
}

/** The settings of a section, in its order. @param prefix its path and a dot; empty for the outermost */
export function settingsIn(section: Section, prefix: string): Setting[] {
  return Object.entries(section.settings).flatMap(([name, node]) =>
    isSection(node) ? settingsIn(node, `${prefix}${name}.`) : [describe(node, prefix, name, section.about)],
  );
}

function describe(leaf: Leaf<unknown>, prefix: string, name: string, about: string): Setting {
  const path = prefix + name;
  const flagName = leaf.flag === false ? undefined : (leaf.flag ?? kebabCase(path));
  return {
    ...leaf,
    path,
    flagName,
    optionKey: flagName?.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
    envNames:
      flagName === undefined
        ? []
        : (leaf.env ?? [`NODEKEEPER_${flagName.replaceAll("-", "_").toUpperCase()}`]),
    isLive: leaf.applied === "live",
    section: { path: prefix.slice(0, -1), about },
  };
}

// "reporting.system.reportCPUFlags" becomes "reporting-system-report-cpu-flags".
function kebabCase(path: string): string {
  return path
    .replace(/([a-z])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .replaceAll(".", "-")
    .toLowerCase();
}
