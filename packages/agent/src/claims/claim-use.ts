import { ClaimInUse } from "@nodekeeper/api/errors";
import { messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { ClaimPod } from "./allocation.ts";
import type { ClaimRecord } from "./claim-records.ts";
import type { ClaimContext, KubeletCall, PodReader } from "./context.ts";

type Context = Pick<ClaimContext, "pods" | "records" | "clock">;

/** A claim whose devices may be in use, and the pods to check. */
export type UsedClaim = Pick<ClaimRecord, "namespace" | "name" | "state" | "boot" | "devices" | "pods">;

const READ_MS = 5_000;
const POLL_MS = 200;
// The kubelet retries a failed prepare only after 60 to 90 s.
const LONGEST_WAIT_MS = 30_000;

/** A container of a claim's pods may still use the claim's devices, so that they can't be unprepared. */
export class StillUsedError extends ClaimInUse {
  readonly claim: UsedClaim;

  constructor(claim: UsedClaim, message: string, cause?: unknown) {
    super({ problem: message }, { cause });
    this.claim = claim;
  }
}

/**
 * Checks with the container runtime whether a claim's devices are in use: they are until all containers of its pods
 * have exited. A created container can be started, and one in an unknown state may be running.
 */
export class ClaimUse {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Throws StillUsedError with the pod, container and devices if they are in use, or if the runtime can't be read. */
  async check(claim: UsedClaim, signal: AbortSignal): Promise<void> {
    const { pods } = this.#context;
    if (!pods) return;
    await Promise.all(claim.pods.map((pod) => this.#checkPod(pods, claim, pod, signal)));
  }

  /** Whether the container runtime is read. Not if the lifecycle part is disabled. */
  get isRuntimeRead(): boolean {
    return this.#context.pods !== undefined;
  }

  /** Returns whether the devices are not in use, as by `check`. */
  async isFree(claim: UsedClaim, signal: AbortSignal): Promise<boolean> {
    try {
      await this.check(claim, signal);
      return true;
    } catch (error) {
      if (error instanceof StillUsedError) return false;
      throw error;
    }
  }

  /**
   * Returns the pods that have a running sandbox. The kubelet considers the claim prepared for them, because it
   * creates a pod's sandbox after preparing its claims (kuberuntime). Omits the pod that the claim was generated for,
   * because no other pod uses the claim. Empty if `lifecycle.enabled` is false. Throws StillUsedError if the runtime
   * can't be read.
   */
  async started(claim: UsedClaim, pods: readonly ClaimPod[], signal: AbortSignal): Promise<ClaimPod[]> {
    const reader = this.#context.pods;
    if (!reader) return [];
    const isStarted = async (pod: ClaimPod) =>
      !pod.isOwner &&
      (await this.#read(reader, claim, pod, signal)).sandboxes.some(({ state }) => state === "running");
    const are = await Promise.all(pods.map(isStarted));
    return pods.filter((_, at) => are[at]);
  }

  /**
   * Throws `conflict` if only the kubelet can determine whether the claim's containers have exited: it has not
   * unprepared the claim, and `lifecycle.enabled` is false.
   */
  checkKnown(claim: UsedClaim): void {
    const { pods, records } = this.#context;
    // No container was started with devices that were never returned to the kubelet.
    if (pods || claim.state !== "prepared" || records.isOfOldBoot(claim)) return;
    const message =
      "the kubelet has not unprepared it, and it is unknown whether its containers have exited, because lifecycle.enabled is false";
    throw new ClaimInUse({ problem: message });
  }

  /**
   * Runs `work`. After a StillUsedError, runs it again once the containers have exited. Waits at most 30 s, and no
   * longer than the call may.
   */
  async whenUnused<T>(work: () => Promise<T>, { signal, waitUntil }: KubeletCall): Promise<T> {
    const { clock } = this.#context;
    const until = Math.min(clock.monotonic() + LONGEST_WAIT_MS, waitUntil);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof StillUsedError)) throw error;
        await this.#untilUnused(error, until, signal);
      }
    }
  }

  async #untilUnused(last: StillUsedError, until: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    if (clock.monotonic() >= until) throw last;
    await clock.sleep(POLL_MS, signal);
    try {
      await this.check(last.claim, signal);
    } catch (error) {
      if (!(error instanceof StillUsedError)) throw error;
      await this.#untilUnused(error, until, signal);
    }
  }

  async #checkPod(reader: PodReader, claim: UsedClaim, pod: ClaimPod, signal: AbortSignal): Promise<void> {
    const { containers } = await this.#read(reader, claim, pod, signal);
    const left = containers.find(({ kind, state }) => kind === "container" && state !== "exited");
    if (!left) return;
    throw new StillUsedError(
      claim,
      `container ${left.name} of ${nameOf(claim, pod)} uses ${namesOf(claim)} and has not exited: its state in the container runtime is ${left.state}`,
    );
  }

  async #read(reader: PodReader, claim: UsedClaim, pod: ClaimPod, signal: AbortSignal) {
    const { clock } = this.#context;
    try {
      const entry = await withDeadline(
        clock,
        { ms: READ_MS, name: "reading the pod's containers" },
        signal,
        (scope) => reader.readNow(pod.uid, scope),
      );
      if (entry.error) throw entry.error;
      return entry.status;
    } catch (error) {
      signal.throwIfAborted();
      const message = `it is unknown whether containers of ${nameOf(claim, pod)} still use ${namesOf(claim)}: ${messageOf(error)}`;
      throw new StillUsedError(claim, message, error);
    }
  }
}

function nameOf({ namespace }: UsedClaim, { name }: ClaimPod): string {
  return `pod ${namespace}/${name}`;
}

function namesOf({ devices }: UsedClaim): string {
  return devices.map(({ pool, device }) => `${pool}/${device}`).join(", ");
}
