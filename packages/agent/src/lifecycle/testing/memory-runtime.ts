import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";
import type {
  CallInFlight,
  ContainerState,
  ContainerStatus,
  HintedExit,
  ListedContainer,
  Pod,
  PodStatus,
  Runtime,
  RuntimeHint,
  RuntimeVersion,
  SandboxStatus,
} from "../../runtime/index.ts";

interface MemoryContainer extends ListedContainer {
  exitCode: number;
}

interface MemoryPod {
  uid: string;
  name: string;
  namespace: string;
  ips: string[];
  containers: Map<string, MemoryContainer>;
}

export type MemoryCall = "listPods" | "listPod" | "podStatus" | "version" | "hints";

/** An in-memory runtime with configurable behavior and faults. */
export class MemoryRuntime implements Runtime {
  readonly pods = new Map<string, MemoryPod>();
  /** Number of calls by method. */
  readonly calls: Record<MemoryCall, number> = {
    listPods: 0,
    listPod: 0,
    podStatus: 0,
    version: 0,
    hints: 0,
  };
  /**
   * Called at the start of each call with the pod's UID, or with "" if the call has none. May throw or delay.
   */
  before: (call: MemoryCall, uid: string, signal: AbortSignal) => Promise<void> | void = () => {};
  /** Called between reading the state and returning it. */
  after: (call: MemoryCall, uid: string) => Promise<void> | void = () => {};
  /** Changes the pods in lists. */
  lie: (pod: Pod) => Pod | undefined = (pod) => pod;
  /** Behavior of `hints`: `none` throws `unsupported`, `off` ends immediately. */
  events: "none" | "off" | "on" = "none";
  runtimeName = "memory";
  runtimeVersion = "1.0";
  /** Number of connections made to the runtime. */
  connected = 1;
  readonly #clock: Clock | undefined;
  #streams = new Set<{ queue: RuntimeHint[]; wake: () => void; end: unknown; ended: boolean }>();
  readonly #inFlight = new Set<CallInFlight>();
  #created = 0n;

  /** @param clock the clock for `delay` and for the start times of calls */
  constructor(clock?: Clock) {
    this.#clock = clock;
  }

  addPod(uid: string, ips: string[] = [`10.0.0.${this.pods.size + 1}`]): void {
    this.pods.set(uid, { uid, name: `pod-${uid}`, namespace: "default", ips, containers: new Map() });
    this.set(uid, `${uid}-sandbox`, "running", "sandbox");
  }

  removePod(uid: string): void {
    this.pods.delete(uid);
  }

  set(
    uid: string,
    id: string,
    state: ContainerState,
    kind: "container" | "sandbox" = "container",
    exitCode = 0,
  ): void {
    const containers = this.pods.get(uid)!.containers;
    const createdAt = containers.get(id)?.createdAt ?? ++this.#created;
    const name = kind === "sandbox" ? "" : id;
    containers.set(id, { id, name, kind, state, attempt: 0, createdAt, exitCode });
  }

  remove(uid: string, id: string): void {
    this.pods.get(uid)?.containers.delete(id);
  }

  /** Sends a hint to every stream. */
  hint(podUid: string, exits: readonly HintedExit[] = []): void {
    for (const stream of this.#streams) {
      stream.queue.push({ podUid, createdAt: 0n, exits });
      stream.wake();
    }
  }

  /** Ends every stream, with an error if one is passed. */
  endStreams(error?: unknown): void {
    for (const stream of this.#streams) {
      stream.end = error;
      stream.ended = true;
      stream.wake();
    }
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Delays a call by `ms` on the runtime's clock. */
  async delay(ms: number, signal: AbortSignal): Promise<void> {
    await this.#clock?.sleep(ms, signal);
  }

  async version(signal: AbortSignal): Promise<RuntimeVersion> {
    await this.#begin("version", "", signal);
    const { runtimeName, runtimeVersion } = this;
    return { runtimeName, runtimeVersion };
  }

  async listPods(signal: AbortSignal): Promise<Pod[]> {
    await this.#begin("listPods", "", signal);
    const pods = [...this.pods.values()].flatMap((pod) => this.lie(listed(pod)) ?? []);
    await this.after("listPods", "");
    return pods;
  }

  async listPod(uid: string, signal: AbortSignal): Promise<Pod | undefined> {
    await this.#begin("listPod", uid, signal);
    const pod = this.pods.get(uid);
    const answer = pod && this.lie(listed(pod));
    await this.after("listPod", uid);
    return answer;
  }

  async podStatus(
    { uid, name, namespace, containers, sandboxes }: Pod,
    signal: AbortSignal,
  ): Promise<PodStatus> {
    await this.#begin("podStatus", uid, signal);
    const pod = this.pods.get(uid);
    const has = ({ id }: ListedContainer) => pod?.containers.get(id) ?? [];
    const status: PodStatus = {
      uid,
      name,
      namespace,
      ips: [...(pod?.ips ?? [])],
      sandboxes: sandboxes
        .flatMap(has)
        .map((sandbox): SandboxStatus => ({ ...sandbox, ips: pod?.ips ?? [] })),
      containers: containers.flatMap(has).map(containerStatus),
    };
    await this.after("podStatus", uid);
    return status;
  }

  connections(): number {
    return this.connected;
  }

  callsInFlight(): readonly CallInFlight[] {
    return [...this.#inFlight];
  }

  async *hints(signal: AbortSignal): AsyncIterable<RuntimeHint> {
    await this.#begin("hints", "", signal);
    if (this.events === "none") throw new NodekeeperError("unsupported", "no such call");
    if (this.events === "off") return;
    let wake = Promise.withResolvers<void>();
    const stream = {
      queue: [] as RuntimeHint[],
      wake: () => wake.resolve(),
      end: undefined as unknown,
      ended: false,
    };
    const onAbort = () => wake.resolve();
    signal.addEventListener("abort", onAbort);
    this.#streams.add(stream);
    try {
      for (;;) {
        signal.throwIfAborted();
        const hint = stream.queue.shift();
        if (hint) yield hint;
        else if (stream.ended) {
          if (stream.end !== undefined) throw stream.end;
          return;
        } else {
          await wake.promise;
          wake = Promise.withResolvers();
        }
      }
    } finally {
      this.#streams.delete(stream);
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #begin(call: MemoryCall, uid: string, signal: AbortSignal): Promise<void> {
    this.calls[call]++;
    const inFlight = {
      method: call,
      id: uid === "" ? undefined : uid,
      startedAt: this.#clock?.monotonic() ?? 0,
    };
    if (call !== "hints") this.#inFlight.add(inFlight);
    try {
      await this.before(call, uid, signal);
    } finally {
      this.#inFlight.delete(inFlight);
    }
    signal.throwIfAborted();
  }
}

function listed({ uid, name, namespace, containers }: MemoryPod): Pod {
  // Newest first, as in the lists of a runtime.
  const all = [...containers.values()].map(({ exitCode, ...container }) => container).reverse();
  return {
    uid,
    name,
    namespace,
    sandboxes: all.filter(({ kind }) => kind === "sandbox"),
    containers: all.filter(({ kind }) => kind === "container"),
  };
}

function containerStatus(container: MemoryContainer): ContainerStatus {
  const { state } = container;
  return {
    ...container,
    image: "image",
    imageRef: "image@sha256:0",
    startedAt: state === "created" ? 0n : 1n,
    finishedAt: state === "exited" ? 2n : 0n,
    exitCode: container.exitCode,
    reason: state === "exited" ? (container.exitCode === 0 ? "Completed" : "Error") : "",
    message: "",
  };
}
