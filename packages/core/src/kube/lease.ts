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
  verbs: ["get", "create", "update"],
  subresources: [],
};

/** Times of an election, milliseconds. */
export interface LeaseTimes {
  /** How long others wait since they last saw the lease change. */
  durationMs: number;
  /** When the holder stops, since its last successful renewal began. Shorter than `durationMs`. */
  deadlineMs: number;
  /** Interval between renewals. */
  renewMs: number;
  /** Mean interval between the looks of those that do not hold it. Any number of nodes may look. */
  lookMs: number;
}

export interface LeaseElectionOptions {
  client: Pick<KubeClient, "get" | "create" | "update">;
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

const defaultTimes: LeaseTimes = { durationMs: 40_000, deadlineMs: 30_000, renewMs: 10_000, lookMs: 30_000 };
const RETRY_MS = 2_000;
const CALL_DEADLINE_MS = 5_000;

/**
 * Elects one of many processes by a Lease, by the rules of client-go's leader election: a holder is replaced only after
 * the others have not seen its Lease change for its whole duration, measured by their own monotonic clocks, and it stops
 * before that. No two processes hold the Lease at a time while their monotonic clocks run at the same speed.
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

  /** Who held the Lease when it was last read. Undefined if nobody did, or it has not been read. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /** Why the Lease could not be read or acquired last time; undefined if it could, or another process has it. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * Runs `lead` while the Lease is held, and takes part in the election otherwise, until the signal aborts. The signal of
   * `lead` aborts when the Lease may be lost. When `signal` aborts, the Lease is released once `lead` has ended, so that
   * another process need not wait for its duration.
   */
  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, log, name } = this.#options;
    while (!signal.aborted) {
      try {
        const startedAt = clock.monotonic();
        const held = await this.#acquire(signal);
        this.#problem = undefined;
        if (held && clock.monotonic() - startedAt < this.#times.renewMs) {
          log.info({ lease: name }, "lease is held");
          await this.#hold(held, startedAt, lead, signal);
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#problem = messageOf(error);
        log.warn({ lease: name, err: error }, "lease can't be acquired, retrying");
      }
      const { random = Math.random } = this.#options;
      await sleepOrAbort(clock, this.#times.lookMs * (0.75 + 0.5 * random()), signal);
    }
  }

  // Returns the Lease if it is held now.
  async #acquire(signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, clock, identity, name, namespace } = this.#options;
    const call = { signal, deadlineMs: CALL_DEADLINE_MS };
    try {
      let lease: KubeObject;
      try {
        lease = await client.get(leases, name, { ...call, namespace });
      } catch (error) {
        if (codeOf(error) !== "notFound") throw error;
        const created = { metadata: { name, namespace }, spec: this.#specOf({}, true) };
        return this.#took(await client.create(leases, created, call));
      }
      const spec = recordOf(lease.spec);
      const holder = textOf(spec.holderIdentity);
      this.#holder = holder || undefined;
      // The answer to an earlier request may have been lost.
      if (holder !== identity && holder !== "" && !this.#isOver(lease, spec, clock.monotonic()))
        return undefined;
      return this.#took(await client.update(leases, { ...lease, spec: this.#specOf(spec, true) }, call));
    } catch (error) {
      // Another process was first.
      if (codeOf(error) === "conflict") return undefined;
      throw error;
    }
  }

  #isOver({ metadata }: KubeObject, spec: Record<string, unknown>, now: number): boolean {
    const version = `${metadata.uid} ${metadata.resourceVersion}`;
    if (this.#seen?.version !== version) {
      this.#seen = { version, at: now };
      return false;
    }
    const seconds = Number(spec.leaseDurationSeconds);
    // Never less than its holder keeps to, whatever the Lease says.
    const durationMs = Math.max(Number.isFinite(seconds) ? seconds * 1_000 : 0, this.#times.durationMs);
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

  async #hold(
    acquired: KubeObject,
    startedAt: number,
    lead: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
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
        lease = renewed?.lease;
        lastRenewal = renewed?.at ?? lastRenewal;
      }
    } finally {
      scope.abort(stopped("the lease is lost"));
      try {
        await leading;
      } finally {
        scope.release();
        if (!lease) {
          this.#holder = undefined;
          log.warn({ lease: name }, "lease is lost");
        } else await this.#free(lease, lastRenewal + this.#times.deadlineMs);
      }
    }
  }

  /**
   * Renews until it succeeds, or it is too late. Aborts the scope in time, even if an answer is missing.
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
          log.warn({ lease: name, err: error }, "lease can't be renewed, retrying");
          if (codeOf(error) === "notFound") return undefined;
          if (codeOf(error) === "conflict") {
            const now = await this.#reread(scope.signal);
            if (now === "other") return undefined;
            last = now ?? last;
          }
          await sleepOrAbort(clock, RETRY_MS, scope.signal);
        }
      }
      // Whether it is still held is not known: it is neither renewed nor released.
      return undefined;
    } finally {
      tooLate.cancel();
    }
  }

  // The answer to an earlier renewal may have been lost, or another client has edited the Lease.
  async #reread(signal: AbortSignal): Promise<KubeObject | "other" | undefined> {
    const { client, identity, name, namespace } = this.#options;
    try {
      const lease = await client.get(leases, name, { signal, namespace, deadlineMs: CALL_DEADLINE_MS });
      return textOf(recordOf(lease.spec).holderIdentity) === identity ? lease : "other";
    } catch {
      return undefined;
    }
  }

  // Only while it is certainly held. On failure, the others wait for its duration.
  async #free(lease: KubeObject, until: number): Promise<void> {
    const { client, clock, log, name } = this.#options;
    this.#holder = undefined;
    const leftMs = Math.min(until - clock.monotonic(), CALL_DEADLINE_MS);
    if (leftMs <= 0) return;
    const spec = { ...recordOf(lease.spec), holderIdentity: "", leaseDurationSeconds: 1 };
    try {
      await client.update(leases, { ...lease, spec }, { deadlineMs: leftMs });
      log.info({ lease: name }, "lease is released");
    } catch (error) {
      log.info({ lease: name, err: error }, "lease can't be released");
    }
  }
}
