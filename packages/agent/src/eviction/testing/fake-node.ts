import { ApiStatusError, type KubeApiClient, type KubeObject, type WatchEvent } from "@nodekeeper/core/kube";
import { type ErrorCode, type FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { OWN_TAINTS } from "../../reporting/index.ts";
import type { LiveTaint } from "../parts.ts";

export type Call = "list" | "watch" | "get" | "patch";

/** The API server's Node, in memory; calls fail as configured by a test. */
export class FakeNode {
  readonly clock: FakeClock;
  /** Undefined: there is no Node. */
  taints: LiveTaint[] | undefined = [];
  fault: (call: Call) => NodekeeperError | undefined = () => undefined;
  readonly calls: { call: Call; at: number }[] = [];
  /** Called once, after the next write and before its response. */
  beforeAnswer: (() => void) | undefined;
  /** The list of the agent's taints; null: there is none. */
  annotation: string | null = null;
  /** The field manager that owns the list of taints. */
  #writer: string | undefined;
  #version = 1;
  #watches = new Set<{
    onEvent: (event: WatchEvent, length: number) => void;
    end: (error: unknown) => void;
  }>();

  constructor(clock: FakeClock) {
    this.clock = clock;
  }

  get client(): KubeApiClient {
    const client: Partial<KubeApiClient> = {
      list: async () => {
        this.#called("list");
        return { items: this.taints ? [this.#object()] : [], resourceVersion: `${this.#version}` };
      },
      watch: async (_resource, { onOpen, onEvent, signal, resourceVersion }) => {
        this.#called("watch");
        onOpen?.();
        // Reports all changes since that version in one event.
        if (resourceVersion !== `${this.#version}`) {
          onEvent({ type: this.taints ? "MODIFIED" : "DELETED", object: this.#object() }, 0);
        }
        const { promise, reject } = Promise.withResolvers<void>();
        const watch = { onEvent, end: reject };
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        this.#watches.add(watch);
        await promise.finally(() => this.#watches.delete(watch));
      },
      get: async () => {
        this.#called("get");
        if (this.taints === undefined) throw noNode();
        return this.#object();
      },
      mergePatch: async (_resource, _name, patch) => {
        this.#called("patch");
        if (this.taints === undefined) throw noNode();
        const { metadata, spec } = patch as {
          metadata: { resourceVersion: string; annotations?: Record<string, string | null> };
          spec: { taints: LiveTaint[] };
        };
        if (metadata.resourceVersion !== `${this.#version}`)
          throw new NodekeeperError("conflict", "modified");
        const { [OWN_TAINTS]: own = this.annotation } = metadata.annotations ?? {};
        this.annotation = own;
        this.put(spec.taints, "nodekeeper");
        const answer = this.#object();
        const happens = this.beforeAnswer;
        this.beforeAnswer = undefined;
        happens?.();
        return answer;
      },
    };
    return client as KubeApiClient;
  }

  /** Writes the Node's taints as the field manager `writer` and notifies watches. Undefined deletes the Node. */
  put(taints: LiveTaint[] | undefined, writer = "kubectl-taint"): void {
    if (taints === undefined) this.annotation = null;
    this.#writer = taints && taints.length > 0 ? writer : undefined;
    const type = taints === undefined ? "DELETED" : this.taints === undefined ? "ADDED" : "MODIFIED";
    const before = this.#object();
    this.taints = taints;
    this.#version++;
    const object = taints === undefined ? before : this.#object();
    for (const { onEvent } of this.#watches) onEvent({ type, object }, 0);
  }

  /** Ends all watches, as a server that restarts. */
  cut(): void {
    for (const { end } of this.#watches) end(new NodekeeperError("unavailable", "cut"));
  }

  count(call: Call): number {
    return this.calls.filter((one) => one.call === call).length;
  }

  #called(call: Call): void {
    this.calls.push({ call, at: this.clock.monotonic() });
    const error = this.fault(call);
    if (error) throw error;
  }

  #object(): KubeObject {
    const update = { operation: "Update", time: "2026-11-21T04:00:00Z" };
    const ofAgent = { "f:metadata": { "f:annotations": { [`f:${OWN_TAINTS}`]: {} } } };
    const managedFields = [
      ...(this.annotation === null ? [] : [{ ...update, manager: "nodekeeper", fieldsV1: ofAgent }]),
      ...(this.#writer
        ? [{ ...update, manager: this.#writer, fieldsV1: { "f:spec": { "f:taints": {} } } }]
        : []),
    ];
    const annotations: Record<string, string> =
      this.annotation === null ? {} : { [OWN_TAINTS]: this.annotation };
    const metadata = {
      name: "node-1",
      uid: "u",
      resourceVersion: `${this.#version}`,
      annotations,
      managedFields,
    };
    return { apiVersion: "v1", kind: "Node", metadata, spec: { taints: this.taints } };
  }
}

function noNode(): NodekeeperError {
  const summary = { reason: "NotFound", kind: "nodes", name: "node-1", causes: [] };
  return new ApiStatusError("notFound", 'nodes "node-1" not found', { httpStatus: 404, summary }, undefined);
}

export const failing = (code: ErrorCode, retryAfterMs?: number) =>
  new NodekeeperError(code, `it is ${code}`, retryAfterMs === undefined ? {} : { retryAfterMs });
