import { allPages, read } from "../world/statements.ts";
import type { TaintChange } from "../world/taint-truths.ts";
import type { World } from "../world/world.ts";
import { hasEnding } from "./endings.ts";
import type { Rule } from "./rule.ts";

interface Mark {
  kind: string;
  title: string;
}

interface Event {
  reason?: string;
  message?: string;
}

interface PluginRow {
  name: string;
  type: string;
  state: string;
}

// What a write leads to is recorded when its response has arrived.
const UNTIL_RECORDED_MS = 1_000;

export const nodeTruth: readonly Rule[] = [
  {
    promise: "Marks and Events about taints are about what the agent wrote, and name no other client.",
    atRest: async (world) => {
      if (!world.agent.process) return [];
      const marks: Mark[] = await allPages(world, "marks?since=0");
      const { changes } = world.api.taints;
      const made = changes.map(textOf);
      const events = (world.api.store.list("events") as unknown as Event[]).flatMap(
        ({ reason, message = "" }) => (reason?.startsWith("NodePressure") ? [message] : []),
      );
      const marked = marks.filter(({ kind }) => kind.startsWith("taint")).map(({ title }) => title);
      const told = marked.map((title) => CHANGED.exec(title)?.[0]);
      const heard = isAllKept(world) ? changes.filter((change) => isHeard(world, change)).map(textOf) : [];
      return [
        ...marked.filter((_, at) => told[at] === undefined).map((title) => `nothing of the kind: ${title}`),
        ...excess(
          told.filter((text) => text !== undefined),
          made,
        ).map((text) => `it was not: ${text}`),
        ...excess(heard, told).map((text) => `no mark: ${text}`),
        ...events.filter((message) => !made.includes(toldBy(message))).map((message) => `Event: ${message}`),
      ];
    },
  },
  {
    promise: "The list of plugins has those as registered that are, and no others.",
    atRest: async (world) => {
      // Of a driver with pools beyond the node, another instance registers with the agent of another node.
      if (hasEnding(world) || world.pools) return [];
      const rows: PluginRow[] = await read(world, "plugins");
      const listed = rows
        .filter(({ state }) => state === "registered")
        .map(({ type, name }) => `${type} ${name}`);
      const registered = world.plugins
        .filter(({ isWanted, isRegistered }) => isWanted && isRegistered)
        .map(({ type, name }) => `${type} ${name}`);
      return [
        ...excess(listed, registered).map((plugin) => `${plugin} is listed as registered`),
        ...excess(registered, listed).map((plugin) => `${plugin} is not listed as registered`),
      ];
    },
  },
];

// "taint nodekeeper.dev/MemoryHot:NoSchedule added: go-eviction reports ...". A restored one was added before.
const CHANGED = /^taint \S+ (added|removed: no longer reported)/;

function textOf({ taint, isAdded }: TaintChange): string {
  return `taint ${taint} ${isAdded ? "added" : "removed: no longer reported"}`;
}

function toldBy(message: string): string {
  return CHANGED.exec(message.replace(/^T/, "t"))?.[0] ?? message;
}

/** Returns the texts that occur more often than in the other list. */
function excess(texts: readonly string[], others: readonly (string | undefined)[]): string[] {
  const left = [...others];
  return texts.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** Returns whether everything that an agent records stays. */
function isAllKept({ faults, history }: World): boolean {
  return !faults.fullDisks && !faults.readOnlyDisks && history.boots.length === 0;
}

/** Returns whether an agent learned of its write and lived on. */
function isHeard({ history, machine }: World, { write: { deliveredAt } }: TaintChange): boolean {
  if (deliveredAt === undefined) return false;
  const keptAt = deliveredAt + UNTIL_RECORDED_MS;
  return (
    keptAt <= machine.scheduler.now &&
    !history.lives.some(({ endedAt }) => endedAt !== undefined && endedAt >= deliveredAt && endedAt <= keptAt)
  );
}
