import { createHash } from "node:crypto";
import { ContainerEventType, ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";
import type {
  ContainerRequest,
  PodIdentity,
  SimulatedContainer,
  SimulatedEvent,
  SimulatedSandbox,
} from "./model.ts";

const NANOSECONDS = 1_000_000n;
const SIGKILLED = 137;
const SIGTERMED = 143;

export interface SimulatedRuntimeOptions {
  clock: Clock;
  /** Called for each event, in order. */
  onEvent?: (event: SimulatedEvent) => void;
  /** Whether pods also get an IPv6 address. Default: no. */
  isDualStack?: boolean;
}

/** Sandboxes and containers of a container runtime without processes. */
export class SimulatedRuntime {
  readonly sandboxes = new Map<string, SimulatedSandbox>();
  readonly containers = new Map<string, SimulatedContainer>();
  readonly #clock: Clock;
  readonly #listeners = new Set<(event: SimulatedEvent) => void>();
  readonly #isDualStack: boolean;
  #made = 0;
  #addresses = 0;
  #lastTime = 0n;

  constructor({ clock, onEvent, isDualStack = false }: SimulatedRuntimeOptions) {
    this.#clock = clock;
    this.#isDualStack = isDualStack;
    if (onEvent) this.#listeners.add(onEvent);
  }

  /** Calls `listener` for each further event. Returns a function that unsubscribes. */
  subscribe(listener: (event: SimulatedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Creates a ready sandbox. Returns its ID. */
  runSandbox(pod: PodIdentity, attempt = 0): string {
    const sandbox: SimulatedSandbox = {
      id: this.#newId(),
      pod: { uid: pod.uid, name: pod.name, namespace: pod.namespace },
      attempt,
      createdAt: this.#now(),
      ips: this.#newAddresses(),
      isReady: true,
    };
    this.sandboxes.set(sandbox.id, sandbox);
    this.#emit(sandbox.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox);
    this.#emit(sandbox.id, ContainerEventType.CONTAINER_STARTED_EVENT, sandbox);
    return sandbox.id;
  }

  /** Creates a container without starting it. Returns its ID. Throws `notFound` if the sandbox does not exist. */
  createContainer(sandboxId: string, request: ContainerRequest): string {
    const sandbox = this.#sandbox(sandboxId);
    const container: SimulatedContainer = {
      id: this.#newId(),
      sandboxId,
      pod: sandbox.pod,
      name: request.name,
      attempt: request.attempt ?? 0,
      image: request.image ?? "images.example/app:1.0",
      createdAt: this.#now(),
      state: ContainerState.CONTAINER_CREATED,
      startedAt: 0n,
      finishedAt: 0n,
      exitCode: 0,
      reason: "",
      memoryBytes: request.memoryBytes ?? 32 * 2 ** 20,
      stopAfterMs: request.stopAfterMs ?? 0,
    };
    this.containers.set(container.id, container);
    this.#emit(container.id, ContainerEventType.CONTAINER_CREATED_EVENT, sandbox);
    return container.id;
  }

  /** Starts a created container. Throws `notFound`, or `conflict` if it was started before. */
  startContainer(id: string): void {
    const container = this.#container(id);
    if (container.state !== ContainerState.CONTAINER_CREATED) {
      throw new NodekeeperError("conflict", `container ${id} has been started before`);
    }
    container.state = ContainerState.CONTAINER_RUNNING;
    container.startedAt = this.#now();
    this.#emit(id, ContainerEventType.CONTAINER_STARTED_EVENT, this.sandboxes.get(container.sandboxId));
  }

  /** Creates and starts a container. Returns its ID. */
  runContainer(sandboxId: string, request: ContainerRequest): string {
    const id = this.createContainer(sandboxId, request);
    this.startContainer(id);
    return id;
  }

  /** Makes a container exit by itself. No effect if it is not running. */
  exit(id: string, exitCode: number, reason = exitCode === 0 ? "Completed" : "Error"): void {
    const container = this.#container(id);
    if (container.state !== ContainerState.CONTAINER_RUNNING) return;
    container.state = ContainerState.CONTAINER_EXITED;
    container.finishedAt = this.#now();
    container.exitCode = exitCode;
    container.reason = reason;
    this.#emit(id, ContainerEventType.CONTAINER_STOPPED_EVENT, this.sandboxes.get(container.sandboxId));
  }

  /** Stops a container and kills it after the grace period. Resolves once it exited. */
  async stopContainer(id: string, graceMs: number, signal?: AbortSignal): Promise<void> {
    const container = this.#container(id);
    if (container.state !== ContainerState.CONTAINER_RUNNING) return;
    const wait = Math.min(container.stopAfterMs, graceMs);
    if (wait > 0) await this.#clock.sleep(wait, signal);
    // Removed meanwhile, which implies that it exited.
    if (!this.containers.has(id)) return;
    this.exit(id, container.stopAfterMs < graceMs ? SIGTERMED : SIGKILLED, "Error");
  }

  /** Removes a container. A running one is killed first. No effect if it was already removed. */
  removeContainer(id: string): void {
    const container = this.containers.get(id);
    if (!container) return;
    this.exit(id, SIGKILLED);
    this.containers.delete(id);
    this.#emit(
      id,
      ContainerEventType.CONTAINER_DELETED_EVENT,
      this.sandboxes.get(container.sandboxId),
      container.pod,
    );
  }

  /** Kills the sandbox's containers and stops the sandbox. */
  stopSandbox(id: string): void {
    const sandbox = this.#sandbox(id);
    if (!sandbox.isReady) return;
    for (const container of this.containersOf(id)) this.exit(container.id, SIGKILLED);
    sandbox.isReady = false;
    this.#emit(id, ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox);
  }

  /** Removes a sandbox with its containers. No effect if it was already removed. */
  removeSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (!sandbox) return;
    this.stopSandbox(id);
    for (const container of this.containersOf(id)) this.removeContainer(container.id);
    this.sandboxes.delete(id);
    this.#emit(id, ContainerEventType.CONTAINER_DELETED_EVENT, undefined, sandbox.pod);
  }

  containersOf(sandboxId: string): SimulatedContainer[] {
    return [...this.containers.values()].filter((container) => container.sandboxId === sandboxId);
  }

  /** Returns the sandboxes of a pod, newest first. */
  sandboxesOf(podUid: string): SimulatedSandbox[] {
    return [...this.sandboxes.values()].filter(({ pod }) => pod.uid === podUid).reverse();
  }

  #emit(
    id: string,
    type: ContainerEventType,
    sandbox: SimulatedSandbox | undefined,
    pod = sandbox?.pod,
  ): void {
    if (!pod) return;
    const container = this.containers.get(id);
    const event: SimulatedEvent = {
      id,
      type,
      at: this.#now(),
      pod,
      sandbox: sandbox && { ...sandbox },
      container: container && { ...container },
    };
    for (const listener of this.#listeners) listener(event);
  }

  #container(id: string): SimulatedContainer {
    const container = this.containers.get(id);
    if (!container) throw new NodekeeperError("notFound", `container ${id} is not there`);
    return container;
  }

  #sandbox(id: string): SimulatedSandbox {
    const sandbox = this.sandboxes.get(id);
    if (!sandbox) throw new NodekeeperError("notFound", `sandbox ${id} is not there`);
    return sandbox;
  }

  // Like containerd's IDs: 64 hexadecimal characters. Derived from a counter, so that a history is reproducible.
  #newId(): string {
    return createHash("sha256")
      .update(`container ${++this.#made}`)
      .digest("hex");
  }

  #newAddresses(): string[] {
    const number = (this.#addresses++ % 65_000) + 2;
    const ip = `10.244.${number >> 8}.${number & 255}`;
    return this.#isDualStack ? [ip, `fd00:10:244::${number.toString(16)}`] : [ip];
  }

  // Strictly increasing.
  #now(): bigint {
    const now = BigInt(Math.round(this.#clock.now())) * NANOSECONDS;
    this.#lastTime = now > this.#lastTime ? now : this.#lastTime + 1n;
    return this.#lastTime;
  }
}
