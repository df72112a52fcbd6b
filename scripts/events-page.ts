// docs/events.md: Kubernetes Events that the agent records, and pod lifecycle events of its log.
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./run-command.ts";

/** Where the page is. */
export const EVENTS_PAGE = "docs/events.md";

const PROTO = "proto/nodekeeper/lifecycle/v1alpha1/api.proto";

interface EventMeaning {
  type: "Normal" | "Warning";
  /** The kind of the object it is about. */
  about: "Pod" | "Node";
  meaning: string;
  /** What the log and `explain` call the same, where it is an error. */
  errorId?: string;
}

/** By reason. `npm run check` compares it with the reasons in the code. */
const events: Readonly<Record<string, EventMeaning>> = {
  ContainerOOMKilled: {
    ...{ type: "Warning", about: "Pod", errorId: "NK1615" },
    meaning:
      "The kernel killed a container of the pod for its memory. The message has the limit and the last known usage.",
  },
  DeviceFieldsDropped: {
    ...{ type: "Warning", about: "Node", errorId: "NK1511" },
    meaning:
      "The API server does not store fields that a driver reports. The devices are published without these fields; the message has each field and the feature that it needs.",
  },
  DevicesQuarantined: {
    ...{ type: "Warning", about: "Node", errorId: "NK1503" },
    meaning:
      "Devices of a driver are not published, because they break a rule, the API server refuses them, or it does not store a field without which they would be allocated on other terms.",
  },
  Evicted: {
    ...{ type: "Warning", about: "Pod" },
    meaning:
      "The eviction was accepted. The message has the plugin and its reason; `nodekeeper explain pod` has the rest.",
  },
  EvictionBlocked: {
    ...{ type: "Warning", about: "Node", errorId: "NK1617" },
    meaning:
      "For a minute no pod could be selected for a hard threshold, or the right to evict is missing: the Node's condition of this name is True. The message has the plugin, the threshold and why.",
  },
  EvictionFailed: {
    ...{ type: "Warning", about: "Pod", errorId: "NK1602" },
    meaning:
      "The pod was selected, and its eviction was not accepted in time; NK1601 where a PodDisruptionBudget refused it.",
  },
  EvictionOverdue: {
    ...{ type: "Warning", about: "Pod", errorId: "NK1610" },
    meaning:
      "The eviction was accepted, and the pod is still terminating after its own grace period and `eviction.releaseMargin`.",
  },
  FieldContested: {
    ...{ type: "Warning", about: "Node", errorId: "NK1807" },
    meaning:
      "Another client writes a field that a plugin reports; the agent restores the plugin's value each time.",
  },
  ForeignSlicesDeleted: {
    ...{ type: "Warning", about: "Node", errorId: "NK1504" },
    meaning: "ResourceSlices of another client were in a driver's pools and are deleted.",
  },
  NodePressureTainted: {
    ...{ type: "Warning", about: "Node" },
    meaning:
      "A taint was added, because an eviction plugin reports a condition. The message has the reading and the threshold.",
  },
  NodePressureUntainted: {
    ...{ type: "Normal", about: "Node" },
    meaning: "The taint was removed: the condition was clear for `eviction.conditionTransitionPeriod`.",
  },
  PluginDisplaced: {
    ...{ type: "Warning", about: "Node", errorId: "NK1324" },
    meaning:
      "The grace period of a lost plugin ended early, because its user or directory has too many lost plugins. At most three at once for each user, then one in ten minutes.",
  },
  PluginRefused: {
    ...{ type: "Warning", about: "Node" },
    meaning:
      "A plugin was refused. The message has the error, for example NK1321: its name belongs to another user. At most three at once for each user, then one in ten minutes.",
  },
  ReportRefused: {
    ...{ type: "Warning", about: "Node", errorId: "NK1802" },
    meaning:
      "The API server rejected what a reporter plugin reports; its last known good content stays published.",
  },
  ReportTooLarge: {
    ...{ type: "Warning", about: "Node", errorId: "NK1801" },
    meaning:
      "A reporter plugin's content is too large for the object; its last known good content stays published.",
  },
  ReporterPluginDropped: {
    ...{ type: "Warning", about: "Node", errorId: "NK1808" },
    meaning:
      "A reporter plugin did not register again within `reporting.pluginGracePeriod`: its report is withdrawn.",
  },
  SoftEvictionNotice: {
    ...{ type: "Warning", about: "Pod" },
    meaning:
      "A plugin requests a soft eviction of a pod that asked to be notified: it is notified, not evicted.",
  },
};

const head = `# Events

<!-- Generated from scripts/events-page.ts and the lifecycle API's proto by "npm run generate". -->

## Kubernetes Events

Recorded by the component \`nodekeeper\`, about the Node or a pod: \`kubectl describe\` shows them. An Event that repeats is one object
with a count; more than 25 about one object at once are limited to one in five minutes (\`nodekeeper_kube_events_total\` counts
them). Messages about pods name the node.

`;

const lifecycleHead = `
## Pod lifecycle events

What \`nodekeeper events\` prints, and what programs on the node read from the agent's log, with a cursor and without gaps
([lifecycle.md](lifecycle.md#events)).

| event | meaning |
|---|---|
`;

/** The text of the page. */
export async function eventsPage(): Promise<string> {
  const rows = Object.entries(events).map(([reason, { type, about, meaning, errorId }]) => {
    const error = errorId ? `[${errorId}](errors.md#${errorId.toLowerCase()})` : "";
    return `| \`${reason}\` | ${type} | ${about} | ${meaning} | ${error} |\n`;
  });
  const table = `| reason | type | about | meaning | error |\n|---|---|---|---|---|\n${rows.join("")}`;
  const proto = await readFile(join(root, PROTO), "utf8");
  return head + table + lifecycleHead + lifecycleRows(proto).join("");
}

// The comments of `enum EventType`; the names are those that commands and the SDK show.
function lifecycleRows(proto: string): string[] {
  const body = /^enum EventType \{\n([\s\S]*?)^\}/m.exec(proto)?.[1] ?? "";
  return [...body.matchAll(/((?: *\/\/.*\n)+) *([A-Z_]+) = [1-9]/g)].map(([, comment, name]) => {
    const shown = name!.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    return `| \`${shown}\` | ${comment!.replace(/\s*\/\/ ?/g, " ").trim()} |\n`;
  });
}

/** Reasons of Events that code records and the page lacks, and the other way round. */
export async function findEventProblems(root: string): Promise<string[]> {
  const recorded = new Map<string, string>();
  for await (const path of glob("packages/{agent,core}/src/**/*.ts", { cwd: root })) {
    if (/\.test\.ts$|\/testing\/|\/gen\//.test(path)) continue;
    const text = (await readFile(join(root, path), "utf8")).replace(/^\s*(\/\*\*|\*|\/\/).*$/gm, "");
    const reasons = text.matchAll(/\breason: "([A-Z][A-Za-z]+)"|\bnotify\(\s*"([A-Z][A-Za-z]+)"/g);
    for (const [, reason, notified] of reasons) recorded.set((reason ?? notified)!, path);
  }
  return [
    ...[...recorded]
      .filter(([reason]) => !(reason in events))
      .map(([reason, path]) => `${path}: the Event ${reason} is not in scripts/events-page.ts`),
    ...Object.keys(events)
      .filter((reason) => !recorded.has(reason))
      .map((reason) => `scripts/events-page.ts: no code records the Event ${reason}`),
  ];
}
