import { join } from "node:path";
import type { Claim, NodePrepareResourceResponse } from "@nodekeeper/core/gen/dra/v1/api.ts";
import { messageOf } from "@nodekeeper/core/lib";
import { heldDevices } from "../../../packages/testing/src/kubelet/claims.ts";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { ClaimScheduler } from "./claim-scheduler.ts";
import { DraPlugins, type DraVersion, draVersions } from "./dra-plugins.ts";
import type { History } from "./history.ts";

/** A claim that the kubelet has called for, or is about to: what it would find in its checkpoint. */
export interface KnownClaim {
  claim: Claim;
  driver: string;
  pool: string;
  device: string;
  podUid: string;
  /** Virtual milliseconds at which the kubelet saw the claim. */
  since: number;
  isPrepared: boolean;
}

/** A successful answer to NodePrepareResources. */
export interface Answer {
  known: KnownClaim;
  cdiDeviceIds: string[];
}

interface Call {
  isPrepare: boolean;
  controller: AbortController;
}

const PERIOD_MS = 500;
const CALL_TIMEOUT_MS = 45_000;

/** The kubelet's DRA manager: has the drivers' plugins prepare the claims of pods that run, and unprepare the others. */
export class ClaimKubelet {
  readonly registryDirectory: string;
  readonly answers: Answer[] = [];
  readonly #machine: Machine;
  readonly #history: History;
  readonly #version: DraVersion;
  readonly #known = new Map<string, KnownClaim>();
  // Virtual milliseconds at which a pod that was to run was last seen with a claim, by UID.
  readonly #lastUsed = new Map<string, number>();
  #process: Process | undefined;

  constructor(machine: Machine, history: History) {
    this.#machine = machine;
    this.#history = history;
    this.#version = machine.pick(draVersions);
    this.registryDirectory = join(machine.root, "kubelet");
  }

  /** Returns a claim that is prepared, or may be. Undefined if it is not, or no longer. */
  find(uid: string): KnownClaim | undefined {
    return this.#known.get(uid);
  }

  /** Returns whether a pod that is to run had the claim within the last `ms`. */
  wasUsedWithin(uid: string, ms: number): boolean {
    return (this.#lastUsed.get(uid) ?? Number.NEGATIVE_INFINITY) >= this.#machine.scheduler.now - ms;
  }

  /** Starts the kubelet; if it runs, it is restarted. It calls again for each claim of a pod that runs. */
  start(scheduler: ClaimScheduler): void {
    this.#process?.kill();
    const process = this.#machine.spawn("kubelet");
    this.#process = process;
    for (const known of this.#known.values()) known.isPrepared = false;
    const plugins = new DraPlugins(this.registryDirectory, this.#version);
    const calls = new Map<string, Call>();
    const loop = () => {
      plugins.step();
      this.#step(process, scheduler, plugins, calls);
      process.after(PERIOD_MS, loop);
    };
    process.after(0, loop);
  }

  #step(process: Process, scheduler: ClaimScheduler, plugins: DraPlugins, calls: Map<string, Call>): void {
    const used = new Set<string>();
    for (const { pod, claims } of scheduler.pods) {
      for (const { metadata, ...claim } of claims) {
        const { name = "", namespace = "", uid = "" } = metadata;
        used.add(uid);
        this.#lastUsed.set(uid, process.scheduler.now);
        const [held] = heldDevices({ metadata, ...claim });
        if (!held || this.#known.has(uid)) continue;
        const since = process.scheduler.now;
        const podUid = pod.metadata.uid!;
        this.#known.set(uid, { claim: { name, namespace, uid }, ...held, podUid, since, isPrepared: false });
      }
    }
    for (const known of this.#known.values()) {
      const { uid } = known.claim;
      const call = calls.get(uid);
      // What the kubelet does when a pod is deleted while it is being started.
      if (!used.has(uid) && call?.isPrepare) call.controller.abort(new Error("the pod was deleted"));
      if (call || (used.has(uid) && known.isPrepared)) continue;
      void this.#call(process, known, used.has(uid), plugins, calls);
    }
  }

  async #call(
    process: Process,
    known: KnownClaim,
    isPrepare: boolean,
    plugins: DraPlugins,
    calls: Map<string, Call>,
  ): Promise<void> {
    const { claim, driver } = known;
    const controller = new AbortController();
    calls.set(claim.uid, { isPrepare, controller });
    const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]);
    const what = `${isPrepare ? "prepare" : "unprepare"} ${claim.uid} (${known.device})`;
    try {
      const client = plugins.client(driver);
      this.#history.note("kubelet", what);
      const request = { claims: [claim] };
      if (isPrepare) this.#prepared(known, (await client.nodePrepareResources(request, { signal })).claims);
      else this.#unprepared(known, (await client.nodeUnprepareResources(request, { signal })).claims);
      this.#history.note("kubelet", `${what}: done`);
    } catch (error) {
      this.#history.note("kubelet", `${what}: ${messageOf(error)}`);
      await process.clock.sleep(this.#machine.between(1_000, 5_000));
    }
    calls.delete(claim.uid);
  }

  #prepared(known: KnownClaim, claims: Record<string, NodePrepareResourceResponse>): void {
    const answer = claims[known.claim.uid]!;
    if (answer.error) throw new Error(answer.error);
    known.isPrepared = true;
    const cdiDeviceIds = answer.devices.flatMap((device) => device.cdiDeviceIds);
    this.answers.push({ known, cdiDeviceIds });
  }

  #unprepared({ claim: { uid } }: KnownClaim, claims: Record<string, { error: string }>): void {
    const { error } = claims[uid]!;
    if (error) throw new Error(error);
    this.#known.delete(uid);
  }
}
