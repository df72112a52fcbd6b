import type { KubeObject } from "@nodekeeper/core/kube";
import type { Process } from "../machine/process.ts";
import type { SliceSpec } from "../world/claim-scheduler.ts";
import type { ApiWrite } from "../world/history.ts";
import { POOL_DRIVER } from "../world/pool-driver.ts";
import { holderOf, isLeaseWrite, isOthers } from "../world/shared-pools.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

// How long a holder may write after it has renewed the Lease, and how long others wait since its last change.
const DEADLINE_MS = 30_000;
const DURATION_MS = 40_000;

/** The Lease and the slices of the rack's pools, by the writes that the API server has done so far. */
class Stored {
  /** The agent that took the Lease last and has not released it, and when it last wrote it. */
  term: { process: Process; renewedAt: number } | undefined;
  lease: { holder: string; changedAt: number } | undefined;
  /** Names of slices of pools beyond the node, also of those that are gone. */
  readonly #shared = new Set<string>();

  take(write: ApiWrite): void {
    if (isSliceWrite(write)) this.#takeSlice(write);
    if (!isLeaseWrite(write)) return;
    const { at, client, sender } = write;
    const holder = holderOf(write);
    this.lease = holder === undefined ? undefined : { holder, changedAt: at };
    // Others are no agents, and an agent whose Lease was taken by one of them stops when it can't renew it.
    if (client !== "other") this.term = holder ? { process: sender, renewedAt: at } : undefined;
  }

  /** Returns whether a write is one of a slice of the rack's pools. */
  isOfPool(write: ApiWrite): boolean {
    return isSliceWrite(write) && (isShared(write) || this.#shared.has(nameOf(write)));
  }

  #takeSlice(write: ApiWrite): void {
    if (isShared(write)) this.#shared.add(nameOf(write));
  }
}

/** Looks at each write of any client once, and again at the end. */
function eachStoredWrite(
  look: (stored: Stored, write: ApiWrite) => string | undefined,
): Required<Pick<Rule, "watch" | "atRest">> {
  const watch = ({ pools, history }: World) => {
    const stored = new Stored();
    let seen = 0;
    return () => {
      if (!pools) return undefined;
      for (; seen < history.writes.length; seen++) {
        const write = history.writes[seen]!;
        const found = write.client === "other" || write.isLate ? undefined : look(stored, write);
        stored.take(write);
        if (found) return `${write.method} ${write.path} of ${write.sender.name}: ${found}`;
      }
      return undefined;
    };
  };
  return { watch, atRest: (world) => [watch(world)() ?? []].flat() };
}

/** Rules about what agents write. They come after those that go on after the calm. */
export const poolWrites: readonly Rule[] = [
  {
    promise:
      "Slices of pools beyond the node are written by the agent that has the Lease, until 30 seconds after its last renewal.",
    ...eachStoredWrite((stored, write) => {
      if (!stored.isOfPool(write)) return undefined;
      const { term } = stored;
      if (term?.process !== write.sender) return `${term?.process.name ?? "no agent"} has the Lease`;
      const sinceMs = write.at - term.renewedAt;
      return sinceMs > DEADLINE_MS ? `${Math.round(sinceMs / 1_000)} s after it renewed it` : undefined;
    }),
  },
  {
    promise: "A Lease is taken only if it was released, or has not changed for 40 seconds.",
    ...eachStoredWrite(({ lease, term }, write) => {
      const holder = holderOf(write);
      if (!holder || !lease?.holder || lease.holder === holder) return undefined;
      // The Lease names its agent by another name after another client has released it.
      const sinceMs = write.at - lease.changedAt;
      if (sinceMs >= DURATION_MS) return undefined;
      return `from ${lease.holder} of ${term?.process.name ?? "no agent"} after ${Math.round(sinceMs)} ms`;
    }),
  },
  {
    promise: "No Lease, slice or note of another owner is changed for a pool beyond the node.",
    watch: eachStoredWrite((_stored, write) =>
      isOthers(write.path.split("/").at(-1)!) ? "is another owner's" : undefined,
    ).watch,
    atRest: ({ pools }) => pools?.changedOfOthers() ?? [],
  },
];

function isSliceWrite({ path, status, isDryRun }: ApiWrite): boolean {
  return !isDryRun && status < 300 && path.includes("/resourceslices");
}

function isShared({ method, body }: ApiWrite): boolean {
  if (method !== "POST" && method !== "PUT") return false;
  const { driver, nodeName } = (body as KubeObject).spec as SliceSpec;
  return driver === POOL_DRIVER && nodeName === undefined;
}

function nameOf({ method, path, body }: ApiWrite): string {
  return method === "POST" ? ((body as KubeObject).metadata.name ?? "") : path.split("/").at(-1)!;
}
