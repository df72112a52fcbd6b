import type { KubeApiClient } from "@nodekeeper/core/kube";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import { type ApiServer, CNRS, NODE } from "./api-server.ts";
import type { History } from "./history.ts";
import { otherClient } from "./other-client.ts";
import { lostOf } from "./other-writers.ts";

interface Patch {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  status?: { resources?: { capacity?: Record<string, string> } };
}

const CNR = {
  group: "node.katalyst.kubewharf.io",
  version: "v1alpha1",
  kind: "CustomNodeResource",
  plural: "customnoderesources",
  namespaced: false,
};

/** Resource of the CustomNodeResource that katalyst's agent reports. */
export const KATALYST_RESOURCE = "resource.katalyst.kubewharf.io/reclaimed_millicpu";

/**
 * katalyst's agent on the same node. As it does (katalyst-core, pkg/client/control/cnr.go), it writes to the
 * CustomNodeResource by merge patches without a version, first of its metadata and then of its status.
 */
export class KatalystAgent {
  readonly #history: History;
  readonly #api: ApiServer;
  readonly #machine: Machine;
  // All its processes.
  readonly #processes = new WeakSet<Process>();
  #process: Process;
  readonly #written: Required<Patch> = { metadata: {}, status: {} };
  #client: Promise<KubeApiClient> | undefined;
  #version = 0;
  #seen = 0;
  #isWriting = false;

  constructor(machine: Machine, history: History, api: ApiServer) {
    this.#history = history;
    this.#api = api;
    this.#machine = machine;
    this.#process = this.#start();
  }

  /** What a boot does: another process takes the place of the one that ran. */
  boot(): void {
    this.#process.kill();
    this.#isWriting = false;
    this.#client = undefined;
    this.#process = this.#start();
  }

  #start(): Process {
    const process = this.#machine.spawn("katalyst-agent");
    this.#processes.add(process);
    return process;
  }

  /** Writes other values than before. Does nothing while the last writes are in progress. */
  write(): void {
    if (!this.#isWriting) this.#process.run(() => void this.#write());
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    const value = `${++this.#version}`;
    const labels = { "katalyst.kubewharf.io/version": value };
    const patches: [Patch, string?][] = [
      [{ metadata: { labels, annotations: { "katalyst.kubewharf.io/note": value } } }],
      [{ status: { resources: { capacity: { [KATALYST_RESOURCE]: value } } } }, "status"],
    ];
    for (const [patch, subresource] of patches) {
      try {
        this.#client ??= otherClient(this.#api, "katalyst-agent");
        await (await this.#client).mergePatch(CNR, NODE, patch, { ...(subresource ? { subresource } : {}) });
      } catch (error) {
        this.#history.note("katalyst-agent", `${value} is not written: ${(error as { code?: string }).code}`);
      }
    }
    this.#isWriting = false;
  }

  /** Returns what it has written and is no longer there. */
  changed(): string | undefined {
    this.#lookAtWrites();
    const found = this.#api.store.get(CNRS, NODE) as Patch | undefined;
    const { metadata, status } = this.#written;
    const lost =
      lostOf("label", metadata.labels, found?.metadata?.labels) ??
      lostOf("annotation", metadata.annotations, found?.metadata?.annotations) ??
      lostOf("capacity", status.resources?.capacity, found?.status?.resources?.capacity);
    return lost && `${CNR.plural}: ${lost}`;
  }

  // Its requests, in the order in which the API server has served them.
  #lookAtWrites(): void {
    const { writes } = this.#history;
    for (; this.#seen < writes.length; this.#seen++) {
      const { sender, status, body } = writes[this.#seen]!;
      if (this.#processes.has(sender) && status < 300) Object.assign(this.#written, body);
    }
  }
}
