import { join } from "node:path";
import { ClaimInUse } from "@nodekeeper/api/errors";
import type { Claim, NodePrepareResourceResponse } from "@nodekeeper/core/gen/dra/v1/api.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf } from "@nodekeeper/core/lib";
import { type HeldDevice, heldDevices } from "../../../packages/testing/src/kubelet/claims.ts";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { ClaimScheduler } from "./claim-scheduler.ts";
import { DraPlugins, type DraVersion, draVersions } from "./dra-plugins.ts";
import type { History } from "./history.ts";

/** A claim, as far as one driver is concerned, that the kubelet has called for or is about to: its checkpoint. */
export interface KnownClaim {
  claim: Claim;
  driver: string;
  devices: HeldDevice[];
  podUid: string;
  /** Virtual milliseconds at which the kubelet saw the claim. */
  since: number;
  isPrepared: boolean;
  /** Virtual milliseconds at which it was last prepared. */
  preparedAt: number;
  /** Whether the agent unprepared it and recorded this, and died before it could answer. */
  isAnswerLost: boolean;
  /** Why the last call failed. Undefined if it was done, or there was none. */
  problem: string | undefined;
}

/** A successful answer to NodePrepareResources. */
export interface Answer {
  known: KnownClaim;
  devices: NodePrepareResourceResponse["devices"];
}

interface Call {
  isPrepare: boolean;
  controller: AbortController;
  /** Whether it has failed, and waits to be repeated. */
  isFailed: boolean;
}

const PERIOD_MS = 500;
const CALL_TIMEOUT_MS = 45_000;
// The driver's answer reaches the agent after this at the earliest: one that died before has only begun to unprepare.
const ANSWERED_MS = 0.05;

/**
 * The kubelet's DRA manager: calls the drivers' plugins to prepare the claims of pods that are to run, and to unprepare
 * all others.
 */
export class ClaimKubelet {
  readonly registryDirectory: string;
  readonly answers: Answer[] = [];
  /** When calls to unprepare failed or were not answered, in virtual milliseconds, by driver and UID of the claim. */
  readonly failedUnprepares: { at: number; key: string }[] = [];
  readonly #machine: Machine;
  readonly #history: History;
  readonly #version: DraVersion;
  readonly #unpreparedAt: (claim: KnownClaim) => number | undefined;
  readonly #known = new Map<string, KnownClaim>();
  // Virtual milliseconds at which a pod that was to run was last seen with a claim, by UID.
  readonly #lastUsed = new Map<string, number>();
  // By driver and UID of the claim.
  #calls = new Map<string, Call>();
  #process: Process | undefined;

  /**
   * @param unpreparedAt returns when the driver unprepared a claim, in virtual milliseconds. Undefined if devices are
   * prepared for it
   */
  constructor(machine: Machine, history: History, unpreparedAt: (claim: KnownClaim) => number | undefined) {
    this.#unpreparedAt = unpreparedAt;
    this.#machine = machine;
    this.#history = history;
    this.#version = machine.pick(draVersions);
    this.registryDirectory = join(machine.root, "kubelet");
  }

  /**
   * Returns a claim that is prepared, or may be. Undefined if it is not, or no longer.
   * @param driver if not given, any that has devices of the claim
   */
  find(uid: string, driver?: string): KnownClaim | undefined {
    if (driver !== undefined) return this.#known.get(`${driver}/${uid}`);
    return [...this.#known.values()].find(({ claim }) => claim.uid === uid);
  }

  /** Whether no call is in progress. */
  get isIdle(): boolean {
    return this.#calls.size === 0;
  }

  /**
   * Returns whether a claim can't be prepared because a pod that waits for it already has running containers. Simulated
   * pods start without their claims; a real kubelet starts no container before they are prepared.
   * @param podName default: any pod
   */
  isUsedTooEarly(uid: string, podName = ""): boolean {
    const { isPrepared, problem = "" } = this.find(uid) ?? {};
    return isPrepared === false && problem.startsWith(ClaimInUse.id) && problem.includes(`/${podName}`);
  }

  /**
   * Returns whether a call to unprepare a claim is in progress. While pods with the claim follow each other, it is not
   * answered before the end of its timeout, because a container of one of them always runs.
   */
  isUnpreparing(uid: string): boolean {
    return [...this.#calls].some(([key, { isPrepare }]) => !isPrepare && key.endsWith(`/${uid}`));
  }

  /** Returns whether a pod that is to run had the claim within the last `ms`. */
  wasUsedWithin(uid: string, ms: number): boolean {
    return (this.#lastUsed.get(uid) ?? Number.NEGATIVE_INFINITY) >= this.#machine.scheduler.now - ms;
  }

  /** Ends the kubelet. Its calls are no longer answered. */
  stop(): void {
    this.#process?.kill();
    for (const [key, { isPrepare, isFailed }] of this.#calls) if (!isPrepare && !isFailed) this.#failed(key);
    this.#calls = new Map();
  }

  /** Starts the kubelet; if it runs, it is restarted. It calls again for each claim of a pod that runs. */
  start(scheduler: ClaimScheduler): void {
    this.stop();
    const process = this.#machine.spawn("kubelet");
    this.#process = process;
    for (const known of this.#known.values()) known.isPrepared = false;
    const plugins = new DraPlugins(this.#machine, this.registryDirectory, this.#version);
    const loop = () => {
      plugins.step();
      this.#step(process, scheduler, plugins);
      process.after(PERIOD_MS, loop);
    };
    process.after(0, loop);
  }

  #step(process: Process, scheduler: ClaimScheduler, plugins: DraPlugins): void {
    const used = new Set<string>();
    for (const { pod, claims } of scheduler.pods) {
      for (const claim of claims) {
        const { uid = "" } = claim.metadata;
        used.add(uid);
        this.#lastUsed.set(uid, process.scheduler.now);
        this.#know(claim, pod.metadata.uid!);
      }
    }
    for (const known of this.#known.values()) {
      const isUsed = used.has(known.claim.uid);
      const call = this.#calls.get(keyOf(known));
      // What the kubelet does when a pod is deleted while it is being started.
      if (!isUsed && call?.isPrepare) call.controller.abort(new Error("the pod was deleted"));
      if (call || (isUsed && known.isPrepared)) continue;
      void this.#call(process, known, isUsed, plugins);
    }
  }

  #know(claim: KubeObject, podUid: string): void {
    const { name = "", namespace = "", uid = "" } = claim.metadata;
    for (const [driver, devices] of Map.groupBy(heldDevices(claim), (device) => device.driver)) {
      const reference = { name, namespace, uid };
      const since = this.#machine.scheduler.now;
      const known = {
        claim: reference,
        driver,
        devices,
        podUid,
        since,
        isPrepared: false,
        preparedAt: 0,
        isAnswerLost: false,
        problem: undefined,
      };
      if (!this.#known.has(keyOf(known))) this.#known.set(keyOf(known), known);
    }
  }

  async #call(process: Process, known: KnownClaim, isPrepare: boolean, plugins: DraPlugins): Promise<void> {
    const { claim, driver, devices } = known;
    const calls = this.#calls;
    const calledAt = process.scheduler.now;
    const controller = new AbortController();
    const call: Call = { isPrepare, controller, isFailed: false };
    calls.set(keyOf(known), call);
    const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
    const names = devices.map(({ device }) => device);
    const what = `${isPrepare ? "prepare" : "unprepare"} ${claim.uid} (${names})`;
    let isSent = false;
    try {
      const client = plugins.client(driver);
      isSent = true;
      this.#history.note("kubelet", what);
      const request = { claims: [claim] };
      if (isPrepare) this.#prepared(known, (await client.nodePrepareResources(request, { signal })).claims);
      else this.#unprepared(known, (await client.nodeUnprepareResources(request, { signal })).claims);
      this.#history.note("kubelet", `${what}: done`);
    } catch (error) {
      // The directory has another name in each run of the world.
      const problem = messageOf(error).replaceAll(this.#machine.root, "");
      this.#history.note("kubelet", `${what}: ${problem}`);
      known.problem = problem;
      call.isFailed = true;
      if (!isPrepare && isSent) this.#failed(keyOf(known));
      const recordedAt = (this.#unpreparedAt(known) ?? Number.POSITIVE_INFINITY) + ANSWERED_MS;
      const hasDied = this.#history.lives.some(
        ({ endedAt = 0 }) => endedAt >= calledAt && endedAt >= recordedAt,
      );
      if (!isPrepare && hasDied) known.isAnswerLost = true;
      await process.clock.sleep(this.#machine.between(1_000, 5_000));
    }
    calls.delete(keyOf(known));
  }

  #failed(key: string): void {
    this.failedUnprepares.push({ at: this.#machine.scheduler.now, key });
  }

  #prepared(known: KnownClaim, claims: Record<string, NodePrepareResourceResponse>): void {
    const answer = claims[known.claim.uid]!;
    if (answer.error) throw new Error(answer.error);
    Object.assign(known, {
      isPrepared: true,
      preparedAt: this.#machine.scheduler.now,
      isAnswerLost: false,
      problem: undefined,
    });
    this.answers.push({ known, devices: answer.devices });
  }

  #unprepared(known: KnownClaim, claims: Record<string, { error: string }>): void {
    const { error } = claims[known.claim.uid]!;
    if (error) throw new Error(error);
    this.#known.delete(keyOf(known));
  }
}

function keyOf({ driver, claim }: Pick<KnownClaim, "driver" | "claim">): string {
  return `${driver}/${claim.uid}`;
}
