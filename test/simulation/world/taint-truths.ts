import type { KubeObject } from "@nodekeeper/core/kube";
import type { ApiWrite } from "./history.ts";
import { taintPrefixes, theirTaints } from "./settings.ts";

/** A taint that a write of the agent added to the Node or removed from it. */
export interface TaintChange {
  /** "key:effect" */
  taint: string;
  isAdded: boolean;
  write: ApiWrite;
}

/** How the agent changed its taints of the Node. No other client of the world changes them. */
export class TaintTruths {
  readonly changes: TaintChange[] = [];
  readonly #node: () => KubeObject | undefined;
  #known: ReadonlySet<string> = new Set();

  /** @param node returns the Node that the API server has now */
  constructor(node: () => KubeObject | undefined) {
    this.#node = node;
  }

  /** Compares the taints with those of the last look. Called after each write of the agent that concerns the Node. */
  look(write: ApiWrite): void {
    const taints = taintsOf(this.#node());
    const add = (before: ReadonlySet<string>, after: ReadonlySet<string>, isAdded: boolean) => {
      for (const taint of after) if (!before.has(taint)) this.changes.push({ taint, isAdded, write });
    };
    add(this.#known, taints, true);
    add(taints, this.#known, false);
    this.#known = taints;
  }
}

function taintsOf(node: KubeObject | undefined): ReadonlySet<string> {
  const { taints = [] } = (node?.spec ?? {}) as { taints?: { key: string; effect: string }[] };
  const isTheAgents = (key: string) =>
    taintPrefixes.some((prefix) => key.startsWith(`${prefix}/`)) && !theirTaints.includes(key);
  return new Set(taints.filter(({ key }) => isTheAgents(key)).map(({ key, effect }) => `${key}:${effect}`));
}
