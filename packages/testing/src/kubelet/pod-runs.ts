import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { isQuantity, parseQuantity, wholeUnits } from "@nodekeeper/core/lib";
import type { SimulatedContainer, SimulatedSandbox } from "../runtime/model.ts";
import type { SimulatedRuntime } from "../runtime/simulated-runtime.ts";
import type { JsonContainer, JsonPod } from "./pods.ts";

export interface PodRunsOptions {
  runtime: SimulatedRuntime;
  /** Time from SIGTERM until containers exit, in milliseconds. */
  stopAfterMs: number;
}

/** Sandboxes and containers of a kubelet's pods, by UID. */
export class PodRuns {
  readonly #runtime: SimulatedRuntime;
  readonly #stopAfterMs: number;
  readonly #sandboxIds = new Map<string, string>();

  constructor({ runtime, stopAfterMs }: PodRunsOptions) {
    this.#runtime = runtime;
    this.#stopAfterMs = stopAfterMs;
  }

  /** Returns whether a pod has a ready sandbox. */
  isReady(uid: string): boolean {
    return this.sandbox(uid)?.isReady === true;
  }

  sandbox(uid: string): SimulatedSandbox | undefined {
    return this.#runtime.sandboxes.get(this.#sandboxIds.get(uid) ?? "");
  }

  containers(uid: string): SimulatedContainer[] {
    const sandboxId = this.#sandboxIds.get(uid);
    return sandboxId === undefined ? [] : this.#runtime.containersOf(sandboxId);
  }

  /** Returns the running containers of a pod. */
  running(uid: string): SimulatedContainer[] {
    return this.containers(uid).filter(({ state }) => state === ContainerState.CONTAINER_RUNNING);
  }

  /** Starts a pod's sandbox and containers, replacing existing ones. */
  start({ metadata, spec }: JsonPod): void {
    const { uid = "", name = "", namespace = "" } = metadata;
    this.remove(uid);
    const sandboxId = this.#runtime.runSandbox({ uid, name, namespace });
    this.#sandboxIds.set(uid, sandboxId);
    for (const container of spec?.containers ?? []) this.#runContainer(sandboxId, container, 0);
  }

  /** Replaces a container that exited. */
  restart({ id, sandboxId, name, attempt }: SimulatedContainer, { spec }: JsonPod): void {
    const container = spec?.containers?.find((each) => each.name === name);
    this.#runtime.removeContainer(id);
    if (container) this.#runContainer(sandboxId, container, attempt + 1);
  }

  /** Stops all containers within the grace period, then the sandbox. Rejects with the signal's reason. */
  async stop(uid: string, gracePeriodSeconds: number, signal: AbortSignal): Promise<void> {
    const graceMs = gracePeriodSeconds * 1_000;
    await Promise.all(this.running(uid).map(({ id }) => this.#runtime.stopContainer(id, graceMs, signal)));
    const sandbox = this.sandbox(uid);
    if (sandbox && this.running(uid).length === 0) this.#runtime.stopSandbox(sandbox.id);
  }

  /** Removes a pod's sandbox and containers. Kills running ones. */
  remove(uid: string): void {
    const sandbox = this.sandbox(uid);
    if (sandbox) this.#runtime.removeSandbox(sandbox.id);
    this.#sandboxIds.delete(uid);
  }

  #runContainer(sandboxId: string, { name, image, resources }: JsonContainer, attempt: number): void {
    const memory = resources?.requests?.memory;
    this.#runtime.runContainer(sandboxId, {
      name,
      attempt,
      stopAfterMs: this.#stopAfterMs,
      ...(image === undefined ? {} : { image }),
      ...(isQuantity(memory) ? { memoryBytes: Number(wholeUnits(parseQuantity(memory))) } : {}),
    });
  }
}
