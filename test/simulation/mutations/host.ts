import type { Mutation } from "./mutation.ts";

const tainted =
  "A taint is on the Node while its condition is reported, and is removed when it no longer is.";
const named =
  "No pod is evicted that no plugin has named in this round, of those that it was offered, that no policy selects, and for which no in-tree plugin has a reading over its threshold.";
const ofHost = "What in-tree plugins answer in a round is what the host's files said then.";
const properties = "After quiet, the published properties of the machine are those of its files.";
const intree = "packages/agent/src/intree";

/** Defects of in-tree plugins and their readings of the host. */
export const hostMutations: readonly Mutation[] = [
  {
    name: "in-tree: more free memory than the minimum is pressure",
    file: `${intree}/eviction/system-memory.ts`,
    from: 'freeBytes < threshold ? "reclaimed" : "none";',
    to: 'freeBytes > threshold ? "reclaimed" : "none";',
    promise: ofHost,
    seed: 7,
  },
  {
    name: "in-tree: memory that can't be read is still short",
    file: `${intree}/eviction/system-memory.ts`,
    from: 'const state = valueIn("memory", memory);',
    to: 'const state = valueIn("memory", memory);\n    if (!state && this.#verdict) return;',
    promise: ofHost,
    seed: 26,
  },
  {
    name: "in-tree: free memory that is missing in the file counts as none",
    file: "packages/agent/src/host/memory.ts",
    from: 'const freeBytes = memoryLine(text, "MemFree");',
    to: 'const freeBytes = memoryLine(text, "MemFree") ?? 0;',
    promise: ofHost,
    seed: 60,
  },
  {
    name: "in-tree: stalls that have ended count on",
    file: `${intree}/eviction/system-memory.ts`,
    from: 'severity: "none", since: undefined };',
    to: 'severity: "none", since };',
    promise: ofHost,
    seed: 299,
  },
  {
    name: "in-tree: a pod with few processes has too many",
    file: `${intree}/eviction/overuse.ts`,
    from: "(pidsOf(pod) ?? 0) > threshold",
    to: "(pidsOf(pod) ?? threshold) < threshold",
    promise: named,
    seed: 2,
  },
  {
    name: "in-tree: a condition without a met threshold is lost",
    file: `${intree}/eviction/in-tree-plugin.ts`,
    from: 'metType === "none" ? nodeCondition(condition) : null',
    to: "null",
    promise: tainted,
    seed: 194,
  },
  {
    name: "in-tree: the online CPUs of the machine are read once",
    file: `${intree}/system-facts.ts`,
    from: "take(host.onlineCpus(signal), before.onlineCpus),",
    to: "before.onlineCpus ?? take(host.onlineCpus(signal), undefined),",
    promise: properties,
    seed: 77,
  },
];
