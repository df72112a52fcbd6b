import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { tableOf, withTable } from "./docs/tables.ts";
import { root } from "./programs.ts";

const PROTO = "proto/nodekeeper/lifecycle/v1alpha1/api.proto";

/** docs/events.md with the pod lifecycle events of the agent's log, which have their meanings in the proto. */
export async function eventsPage(page: string): Promise<string> {
  const proto = await readFile(join(root, PROTO), "utf8");
  const body = /^enum EventType \{\n([\s\S]*?)^\}/m.exec(proto)?.[1] ?? "";
  const rows = [...body.matchAll(/((?: *\/\/.*\n)+) *([A-Z_]+) = [1-9]/g)].map(([, comment, name]) => {
    // As commands and the SDK show it.
    const shown = name!.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    return [`\`${shown}\``, comment!.replace(/\s*\/\/ ?/g, " ").trim()];
  });
  return withTable(page, tableOf(["event", "meaning"], rows));
}

/** Reasons of Events that code records and docs/events.md lacks, and the other way round. */
export async function findEventProblems(root: string): Promise<string[]> {
  const page = await readFile(join(root, "docs/events.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| (?:Normal|Warning) \|/gm)];
  const documented = new Set(rows.map(([, reason]) => reason!));
  const recorded = new Map<string, string>();
  for await (const path of glob("packages/{agent,core}/src/**/*.ts", { cwd: root })) {
    if (/\.test\.ts$|\/testing\/|\/gen\//.test(path)) continue;
    const text = (await readFile(join(root, path), "utf8")).replace(/^\s*(\/\*\*|\*|\/\/).*$/gm, "");
    const reasons = text.matchAll(/\breason: "([A-Z][A-Za-z]+)"|\bnotify\(\s*"([A-Z][A-Za-z]+)"/g);
    for (const [, reason, notified] of reasons) recorded.set((reason ?? notified)!, path);
  }
  const missing = [...recorded].filter(([reason]) => !documented.has(reason));
  return [
    ...missing.map(([reason, path]) => `${path}: the Event ${reason} is not in docs/events.md`),
    ...[...documented]
      .filter((reason) => !recorded.has(reason))
      .map((reason) => `docs/events.md: no code records the Event ${reason}`),
  ];
}
