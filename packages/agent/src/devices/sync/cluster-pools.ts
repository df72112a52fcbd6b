import { randomUUID } from "node:crypto";
import { LeaseElection } from "@nodekeeper/core/kube";
import { childScope, type Runnable, sleepOrAbort, stopped, WorkQueue } from "@nodekeeper/core/lib";
import { EVERY_DRIVER, type SyncContext } from "./context.ts";
import type { Drivers } from "./drivers.ts";
import { Sessions } from "./session.ts";
import { SliceSync } from "./slice-sync.ts";
import type { ClusterPoolsOf } from "./status.ts";

/** The parts that run while the agent holds a driver's Lease. */
interface Term {
  queue: WorkQueue;
  sessions: Sessions;
  slices: SliceSync;
}

interface Candidacy {
  election: LeaseElection;
  term: Term | undefined;
  /** Whether its slices are gone and its driver reports no such pools. */
  isDone: boolean;
}

const LOOK_MS = 1_000;

/**
 * Publishes pools beyond the node for the drivers in the setting `devices.clusterPools.drivers`. For each driver, the
 * agents on all nodes whose driver reports such pools elect one of them, by a Lease.
 *
 * 1. If the holder stops, is killed, or steps down without its driver, the next holder takes over its slices.
 * 2. A pool is removed if the holder's driver is connected and no longer reports it.
 * 3. The holder stops writing before another agent can be elected.
 * 4. The Lease exists while there may be slices. If no agent has held it for a long time, an agent whose driver reports
 *    no such pools takes it, deletes the driver's slices that agents published, and deletes the Lease.
 */
export class ClusterPools implements Runnable {
  readonly name = "cluster-pools";
  readonly #context: Omit<SyncContext, "queue" | "scope">;
  readonly #drivers: Drivers;
  readonly #isSupported: () => boolean;
  readonly #candidacies = new Map<string, Candidacy>();

  /** @param isSupported whether the server has pools beyond the node */
  constructor(context: Omit<SyncContext, "queue" | "scope">, drivers: Drivers, isSupported: () => boolean) {
    this.#context = context;
    this.#drivers = drivers;
    this.#isSupported = isSupported;
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
      this.#candidacies.set(driver, { election, term: undefined, isDone: false });
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

  // Takes part in the election while the driver is present. If the driver reports no pools beyond the node, takes only
  // a Lease that no agent has held for long: see `isPatient` of `LeaseElection.run`.
  async #stand(name: string, candidacy: Candidacy, signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    while (!signal.aborted) {
      const driver = this.#drivers.get(name);
      if (!driver?.isPresent || !this.#isSupported()) {
        await sleepOrAbort(clock, LOOK_MS, signal);
        continue;
      }
      const isPatient = !driver.hasClusterPools;
      const scope = childScope(signal);
      const lead = (term: AbortSignal) => this.#publish(name, candidacy, term);
      const taking = candidacy.election.run(lead, scope.signal, isPatient);
      try {
        while (!scope.signal.aborted && this.#isCurrent(name, candidacy, isPatient))
          await sleepOrAbort(clock, LOOK_MS, scope.signal);
      } finally {
        scope.abort(stopped("the driver is away, or what it reports has changed"));
        await taking;
        scope.release();
      }
    }
  }

  // Returns whether the candidacy continues. A holder whose driver no longer reports pools beyond the node deletes
  // their slices first.
  #isCurrent(name: string, candidacy: Candidacy, isPatient: boolean): boolean {
    const driver = this.#drivers.get(name);
    if (!driver?.isPresent || !this.#isSupported()) return false;
    if (!candidacy.term) return driver.hasClusterPools !== isPatient;
    candidacy.isDone = !driver.hasClusterPools && !mayHaveSlices(name, candidacy.term);
    return !candidacy.isDone;
  }

  // Returns whether nothing is left to publish or to delete.
  async #publish(driver: string, candidacy: Candidacy, signal: AbortSignal): Promise<boolean> {
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
    candidacy.isDone = false;
    try {
      await Promise.all([slices.run(signal), sessions.run(signal)]);
      return candidacy.isDone;
    } finally {
      candidacy.term = undefined;
      this.#drivers.get(driver)?.feedback.setClusterPools(undefined);
    }
  }
}

// A write of an earlier report may be in progress, or its response may be lost. Once a sync of the current
// report has completed, that write has ended and its slice is known.
function mayHaveSlices(driver: string, { sessions, slices }: Term): boolean {
  const cache = sessions.current?.cache;
  return !cache?.isSynced || cache.size > 0 || !slices.isSettled(driver);
}

/** Returns the name of the Lease whose holder publishes a driver's pools beyond the node. */
export function leaseName(driver: string): string {
  return `nodekeeper-pools-${driver}`;
}
