import { randomUUID } from "node:crypto";
import { LeaseElection } from "@nodekeeper/core/kube";
import { childScope, type Runnable, sleepOrAbort, stopped, WorkQueue } from "@nodekeeper/core/lib";
import { EVERY_DRIVER, type SyncContext } from "./context.ts";
import type { Drivers } from "./drivers.ts";
import { Sessions } from "./session.ts";
import { SliceSync } from "./slice-sync.ts";
import type { ClusterPoolsOf } from "./status.ts";

/** What a holder of a driver's lease has open. */
interface Term {
  queue: WorkQueue;
  sessions: Sessions;
  slices: SliceSync;
}

interface Candidacy {
  election: LeaseElection;
  term: Term | undefined;
  /** Whether this agent stepped down while its slices stayed: if its driver comes back without such pools, it deletes them. */
  hasLeft: boolean;
}

const LOOK_MS = 1_000;

/**
 * Publishes pools beyond the node for the drivers that the setting `devices.clusterPools.drivers` names. The agents on all
 * nodes whose drivers report such pools elect one of them by a Lease for each driver.
 *
 * 1. Slices stay when the holder ends, is killed, or steps down because its driver is away: the next holder takes them over.
 * 2. A pool is removed if the holder's driver is connected and reports others only, or none.
 * 3. The holder stops writing before another agent can be elected.
 */
export class ClusterPools implements Runnable {
  readonly name = "cluster-pools";
  readonly #context: Omit<SyncContext, "queue" | "scope">;
  readonly #drivers: Drivers;
  readonly #candidacies = new Map<string, Candidacy>();

  constructor(context: Omit<SyncContext, "queue" | "scope">, drivers: Drivers) {
    this.#context = context;
    this.#drivers = drivers;
    const { client, clock, log, nodeName, settings, leaseTimes } = context;
    const { drivers: names, leaseNamespace: namespace } = settings().clusterPools;
    // Not the same after a restart: a write of the process before it may still be under way.
    const identity = `${nodeName}_${randomUUID()}`;
    for (const driver of names) {
      const name = leaseName(driver);
      const election = new LeaseElection({
        ...{ client, namespace, name, identity, clock, log },
        ...(leaseTimes && { times: leaseTimes }),
      });
      this.#candidacies.set(driver, { election, term: undefined, hasLeft: false });
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#candidacies].map(([driver, each]) => this.#stand(driver, each, signal)));
  }

  /** Queues a driver whose report has changed. */
  add(driver: string): void {
    this.#candidacies.get(driver)?.term?.queue.add(driver);
  }

  /** Undefined if the driver may not have pools beyond the node. */
  of(driver: string): ClusterPoolsOf | undefined {
    const candidacy = this.#candidacies.get(driver);
    if (!candidacy) return undefined;
    const { election, term } = candidacy;
    const cache = term?.sessions.current?.cache;
    return {
      lease: `${this.#context.settings().clusterPools.leaseNamespace}/${leaseName(driver)}`,
      holder: election.holder,
      isHolder: term !== undefined,
      problem: election.problem,
      slices: cache?.of(driver) ?? [],
      foreign: cache?.foreignOf(driver) ?? [],
      desired: term?.slices.desired(driver),
      sync: term?.slices.syncOf(driver),
    };
  }

  // Takes part in the election while the driver reports pools beyond the node.
  async #stand(driver: string, candidacy: Candidacy, signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    while (!signal.aborted) {
      const known = this.#drivers.get(driver);
      if (!known?.hasClusterPools && !(candidacy.hasLeft && known?.isPresent)) {
        await sleepOrAbort(clock, LOOK_MS, signal);
        continue;
      }
      const scope = childScope(signal);
      const standing = candidacy.election.run((term) => this.#publish(driver, candidacy, term), scope.signal);
      try {
        while (!scope.signal.aborted && this.#isNeeded(driver, candidacy))
          await sleepOrAbort(clock, LOOK_MS, scope.signal);
      } finally {
        if (candidacy.term) candidacy.hasLeft = mayHaveSlices(candidacy.term);
        scope.abort(stopped("the driver is away, or reports no pools beyond the node"));
        await standing;
        scope.release();
      }
    }
  }

  // A holder whose driver no longer reports any deletes their slices first.
  #isNeeded(name: string, candidacy: Candidacy): boolean {
    const driver = this.#drivers.get(name);
    if (!driver?.isPresent) return false;
    if (driver.hasClusterPools) return true;
    if (candidacy.term) return mayHaveSlices(candidacy.term);
    // Another holder keeps them, or deletes them.
    if (candidacy.election.holder !== undefined) candidacy.hasLeft = false;
    return candidacy.hasLeft;
  }

  async #publish(driver: string, candidacy: Candidacy, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#context;
    const queue = new WorkQueue({ name: "cluster-pools", untimed: EVERY_DRIVER, clock, log });
    const context = {
      ...this.#context,
      queue,
      scope: { nodeName: undefined, driver },
      drivers: this.#drivers,
    };
    const sessions = new Sessions(context);
    const slices = new SliceSync({ ...context, sessions });
    candidacy.term = { queue, sessions, slices };
    try {
      await Promise.all([slices.run(signal), sessions.run(signal)]);
    } finally {
      candidacy.term = undefined;
      this.#drivers.get(driver)?.feedback.setClusterPools(undefined);
    }
  }
}

function mayHaveSlices({ sessions }: Term): boolean {
  const cache = sessions.current?.cache;
  return !cache?.isSynced || cache.size > 0;
}

function leaseName(driver: string): string {
  return `nodekeeper-pools-${driver}`;
}
