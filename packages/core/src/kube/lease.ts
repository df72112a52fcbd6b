import {
  type Clock,
  childScope,
  codeOf,
  type Logger,
  messageOf,
  type ScopedSignal,
  sleepOrAbort,
  stopped,
} from "../lib/index.ts";
import { recordOf, textOf } from "./objects.ts";
import type { ApiResource, KubeClient, KubeObject } from "./types.ts";

export const leases: ApiResource = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
};

/** Times of an election, milliseconds. */
export interface LeaseTimes {
  /** How long others wait since they last saw the lease change. */
  durationMs: number;
  /** Time from the start of the last successful renewal after which the holder stops. Shorter than `durationMs`. */
  deadlineMs: number;
  /** Interval between renewals. */
  renewMs: number;
  /** Mean interval between reads of the Lease by processes that do not hold it. Any number of nodes may read. */
  lookMs: number;
  /**
   * How long a patient process (see `run`) waits after it last saw the Lease change before it acquires it. The mean
   * interval between its reads of the Lease is half of this.
   */
  abandonedMs: number;
}

export interface LeaseElectionOptions {
  client: Pick<KubeClient, "get" | "create" | "update" | "delete">;
  namespace: string;
  name: string;
  /** Unique among all processes that ever take part. */
  identity: string;
  clock: Clock;
  log: Logger;
  times?: LeaseTimes;
  /** In [0, 1), for jitter. Default Math.random. */
  random?: () => number;
}

/** Work of the holder. Resolves to true if it is done and no process needs the Lease any more. */
type Lead = (signal: AbortSignal) => Promise<boolean>;

const defaultTimes: LeaseTimes = {
  durationMs: 40_000,
  deadlineMs: 30_000,
  renewMs: 10_000,
  lookMs: 30_000,
  abandonedMs: 600_000,
};
const RETRY_MS = 2_000;
const CALL_DEADLINE_MS = 5_000;

/**
 * Elects one of many processes by a Lease, following the rules of client-go's leader election. A process replaces the
 * holder only if it has not seen the Lease change for the Lease's whole duration, measured by its own monotonic clock.
 * The holder stops before that. Two processes never hold the Lease at the same time if their monotonic clocks run at
 * the same speed.
 */
export class LeaseElection {
  readonly #options: LeaseElectionOptions;
  readonly #times: LeaseTimes;
  /** The Lease of another holder, and when it was first seen like this, monotonic milliseconds. */
  #seen: { version: string; at: number } | undefined;
  #holder: string | undefined;
  #problem: string | undefined;

  constructor(options: LeaseElectionOptions) {
    this.#options = options;
    this.#times = options.times ?? defaultTimes;
  }

  /**
   * Identity of the holder when the Lease was last read or acquired. Undefined if nobody held it, before the first
   * read, and after this process released or lost the Lease until it is read again.
   */
  get holder(): string | undefined {
    return this.#holder;
  }

  /**
   * Why the last attempt to read or acquire the Lease failed, or the error of `lead`. Undefined before the first
   * attempt, if the last one succeeded, or if another process holds the Lease.
   */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * Runs `lead` while the Lease is held, and takes part in the election otherwise, until the signal aborts. Never
   * rejects: if `lead` fails, the error is logged and the election continues. The signal passed to `lead` aborts when
   * the Lease may be lost. When `signal` aborts, the Lease is released after `lead` has ended, so that another process
   * does not have to wait until it expires. If `lead` returns true, the Lease is no longer needed and is deleted.
   * @param isPatient whether to never create the Lease, and to acquire it only if unchanged for `abandonedMs`
   */
  async run(lead: Lead, signal: AbortSignal, isPatient = false): Promise<void> {
    const { clock, log, name } = this.#options;
    while (!signal.aborted) {
      let isHeld = false;
      try {
        const startedAt = clock.monotonic();
        const held = await this.#acquire(isPatient, signal);
        this.#problem = undefined;
        if (held && clock.monotonic() - startedAt < this.#times.renewMs) {
          log.info({ lease: name }, "acquired lease");
          isHeld = true;
          await this.#hold(held, startedAt, lead, signal);
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#problem = messageOf(error);
        if (isHeld) log.warn({ lease: name, err: error }, "work under the lease failed, retrying");
        else log.warn({ lease: name, err: error }, "failed to acquire lease, retrying");
      }
      const { random = Math.random } = this.#options;
      const lookMs = isPatient ? this.#times.abandonedMs / 2 : this.#times.lookMs;
      await sleepOrAbort(clock, lookMs * (0.75 + 0.5 * random()), signal);
    }
  }

  // Returns the Lease if it is held now.
  async #acquire(isPatient: boolean, signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, identity, name, namespace } = this.#options;
    const call = { signal, deadlineMs: CALL_DEADLINE_MS };
    try {
      let lease: KubeObject;
      try {
        // The server's cache suffices: a write on an outdated answer conflicts.
        lease = await client.get(leases, name, { ...call, namespace, resourceVersion: "0" });
      } catch (error) {
        if (codeOf(error) !== "notFound") throw error;
        this.#holder = undefined;
        if (isPatient) return undefined;
        const created = { metadata: { name, namespace }, spec: this.#specOf({}, true) };
        return this.#took(await client.create(leases, created, call));
      }
      const spec = recordOf(lease.spec);
      const holder = textOf(spec.holderIdentity);
      this.#holder = holder || undefined;
      // The answer to an earlier request may have been lost.
      if (holder !== identity && !this.#isOver(lease, spec, isPatient)) return undefined;
      return this.#took(await client.update(leases, { ...lease, spec: this.#specOf(spec, true) }, call));
    } catch (error) {
      // Another process was first.
      if (codeOf(error) === "conflict") return undefined;
      throw error;
    }
  }

  #isOver({ metadata }: KubeObject, spec: Record<string, unknown>, isPatient: boolean): boolean {
    if (textOf(spec.holderIdentity) === "" && !isPatient) return true;
    const now = this.#options.clock.monotonic();
    const version = `${metadata.uid} ${metadata.resourceVersion}`;
    if (this.#seen?.version !== version) {
      this.#seen = { version, at: now };
      return false;
    }
    const seconds = Number(spec.leaseDurationSeconds);
    // Never shorter than this process's own setting, even if the Lease states a shorter duration.
    const leastMs = isPatient ? this.#times.abandonedMs : this.#times.durationMs;
    const durationMs = Math.max(Number.isFinite(seconds) ? seconds * 1_000 : 0, leastMs);
    return now - this.#seen.at >= durationMs;
  }

  #took(lease: KubeObject): KubeObject {
    this.#holder = this.#options.identity;
    this.#seen = undefined;
    return lease;
  }

  // Source: coordination.k8s.io/v1. Times are for people; no process compares them with its clock.
  #specOf(before: Record<string, unknown>, isNew: boolean): Record<string, unknown> {
    const { clock, identity } = this.#options;
    const now = new Date(clock.now()).toISOString().replace("Z", "000Z");
    const transitions = Number(before.leaseTransitions ?? -1);
    return {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#times.durationMs / 1_000),
      renewTime: now,
      ...(isNew && {
        acquireTime: now,
        leaseTransitions: Number.isFinite(transitions) ? transitions + 1 : 0,
      }),
    };
  }

  async #hold(acquired: KubeObject, startedAt: number, lead: Lead, signal: AbortSignal): Promise<void> {
    const { clock, log, name } = this.#options;
    const scope = childScope(signal);
    let lease: KubeObject | undefined = acquired;
    let lastRenewal = startedAt;
    const leading = lead(scope.signal);
    leading.catch(() => {}).finally(() => scope.abort(stopped("no longer leading")));
    try {
      while (lease && !scope.signal.aborted) {
        await sleepOrAbort(clock, lastRenewal + this.#times.renewMs - clock.monotonic(), scope.signal);
        if (scope.signal.aborted) break;
        const renewed = await this.#renew(lease, lastRenewal + this.#times.deadlineMs, scope);
        // If it was stopped meanwhile, the last one known is released.
        if (!renewed && scope.signal.aborted) break;
        lease = renewed?.lease;
        lastRenewal = renewed?.at ?? lastRenewal;
      }
    } finally {
      scope.abort(stopped("the lease is lost"));
      let isDone = false;
      try {
        isDone = await leading;
      } finally {
        scope.release();
        this.#holder = undefined;
        const until = lastRenewal + this.#times.deadlineMs;
        if (lease && clock.monotonic() < until) await this.#free(lease, until, isDone);
        else log.warn({ lease: name }, "lost lease");
      }
    }
  }

  /**
   * Renews the Lease, retrying until it succeeds. At `until`, aborts the scope, even if a request is in progress.
   * Returns undefined if the Lease is lost or the scope was aborted.
   * @param until monotonic milliseconds
   */
  async #renew(
    lease: KubeObject,
    until: number,
    scope: ScopedSignal,
  ): Promise<{ lease: KubeObject; at: number } | undefined> {
    const { client, clock, log, name } = this.#options;
    const tooLate = clock.after(until - clock.monotonic(), () =>
      scope.abort(stopped("the lease was not renewed")),
    );
    try {
      let last = lease;
      while (!scope.signal.aborted) {
        const at = clock.monotonic();
        try {
          const call = { signal: scope.signal, deadlineMs: CALL_DEADLINE_MS };
          const update = { ...last, spec: this.#specOf(recordOf(last.spec), false) };
          return { lease: await client.update(leases, update, call), at };
        } catch (error) {
          if (scope.signal.aborted) break;
          log.warn({ lease: name, err: error }, "failed to renew lease, retrying");
          if (["conflict", "notFound"].includes(codeOf(error))) {
            const now = await this.#reread(scope.signal);
            if (now === "none") return undefined;
            last = now ?? last;
          }
          await sleepOrAbort(clock, RETRY_MS, scope.signal);
        }
      }
      return undefined;
    } finally {
      tooLate.cancel();
    }
  }

  // Reads the Lease after a conflict. Returns it if this process still holds it: the response to an earlier renewal may
  // have been lost, or another client has edited the Lease. Returns "none" if it does not, and undefined if the Lease
  // can't be read. An update of a deleted Lease conflicts, too, because it has a UID.
  async #reread(signal?: AbortSignal): Promise<KubeObject | "none" | undefined> {
    const { client, identity, name, namespace } = this.#options;
    try {
      const lease = await client.get(leases, name, { signal, namespace, deadlineMs: CALL_DEADLINE_MS });
      return textOf(recordOf(lease.spec).holderIdentity) === identity ? lease : "none";
    } catch (error) {
      return codeOf(error) === "notFound" ? "none" : undefined;
    }
  }

  /**
   * Releases the Lease, or deletes it if `isDone`. Does nothing after `until`, because the Lease may no longer be held.
   * A failure is logged. The other processes then wait for the duration of the Lease.
   * @param until monotonic milliseconds
   */
  async #free(lease: KubeObject, until: number, isDone: boolean, isReread = false): Promise<void> {
    const { client, clock, log, name, namespace } = this.#options;
    const { uid, resourceVersion } = lease.metadata;
    const call = { deadlineMs: Math.min(until - clock.monotonic(), CALL_DEADLINE_MS) };
    if (call.deadlineMs <= 0) return;
    try {
      if (isDone)
        await client.delete(leases, name, { ...call, namespace, preconditions: { uid, resourceVersion } });
      else {
        const spec = { ...recordOf(lease.spec), holderIdentity: "", leaseDurationSeconds: 1 };
        await client.update(leases, { ...lease, spec }, call);
      }
      log.info({ lease: name }, isDone ? "deleted lease" : "released lease");
    } catch (error) {
      if (codeOf(error) === "conflict" && !isReread) {
        // A renewal that was stopped arrived.
        const now = await this.#reread();
        if (now && now !== "none") return await this.#free(now, until, isDone, true);
      }
      log.info({ lease: name, err: error }, "failed to release lease");
    }
  }
}
