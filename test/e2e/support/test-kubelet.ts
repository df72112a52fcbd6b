import { setTimeout as sleep } from "node:timers/promises";
import { parseByteSize } from "@nodekeeper/core/lib";
import { ApiError, type ApiObject } from "./admin-client.ts";
import { removeCgroup } from "./cgroups.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { CriClient } from "./cri-client.ts";

interface RunningPod {
  sandbox: string;
  containers: Map<string, string>;
}

/**
 * What a kubelet does for eviction, and no more: runs the pods of a node as real containers, says that they are ready,
 * and stops them when the API server says so, confirming the end by a deletion without grace.
 */
export class TestKubelet {
  readonly #cluster: ControlPlane;
  readonly #cri: CriClient;
  readonly #node: string;
  readonly #stop = new AbortController();
  readonly #running = new Map<string, RunningPod>();
  readonly #busy = new Map<string, Promise<void>>();
  readonly #done: Promise<void>;
  /** Command of the containers; their names are those of the pods' containers. */
  readonly #command: (pod: ApiObject) => readonly string[];
  /** Pods by name that it does not touch, as a kubelet that hangs. */
  readonly ignored = new Set<string>();
  readonly problems: string[] = [];
  readonly #cgroups: string[] = [];

  constructor(
    cluster: ControlPlane,
    cri: CriClient,
    node: string,
    command: (pod: ApiObject) => readonly string[] = () => ["/bin/sleep", "1000000"],
  ) {
    this.#cluster = cluster;
    this.#cri = cri;
    this.#node = node;
    this.#command = command;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    await Promise.allSettled(this.#busy.values());
    for (const path of this.#cgroups) await removeCgroup(path);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const { items } = await this.#cluster.admin.get(
          `/api/v1/pods?fieldSelector=spec.nodeName%3D${this.#node}`,
        );
        for (const pod of items as ApiObject[]) this.#sync(pod);
      } catch (error) {
        this.problems.push(String(error));
      }
      await sleep(100, undefined, { signal }).catch(() => {});
    }
  }

  #sync(pod: ApiObject): void {
    const { uid, name, deletionTimestamp } = pod.metadata;
    if (this.#busy.has(uid) || this.ignored.has(name)) return;
    const work = deletionTimestamp ? this.#end(pod) : this.#running.has(uid) ? undefined : this.#start(pod);
    if (!work) return;
    const busy = work
      .catch((error) => void this.problems.push(`${name}: ${error}`))
      .finally(() => this.#busy.delete(uid));
    this.#busy.set(uid, busy);
  }

  async #start(pod: ApiObject): Promise<void> {
    const { uid, name, namespace } = pod.metadata;
    const cgroupParent = `/kubepods/burstable/pod${uid}`;
    this.#cgroups.push(cgroupParent);
    const sandbox = await this.#cri.runPodSandbox({ uid, name, namespace, cgroupParent });
    const running: RunningPod = { sandbox, containers: new Map() };
    this.#running.set(uid, running);
    for (const container of pod.spec.containers as ApiObject[]) {
      const memory = container.resources?.limits?.memory;
      const id = await this.#cri.runContainer(sandbox, {
        name: container.name,
        command: this.#command(pod),
        ...(memory ? { memoryLimit: parseByteSize(memory) } : {}),
      });
      running.containers.set(container.name, id);
    }
    const time = new Date().toISOString();
    const conditions = [{ type: "Ready", status: "True", lastTransitionTime: time }];
    await this.#cluster.admin.patch(`/api/v1/namespaces/${namespace}/pods/${name}/status`, {
      metadata: { uid },
      status: { phase: "Running", startTime: time, conditions },
    });
  }

  async #end(pod: ApiObject): Promise<void> {
    const { uid, name, namespace, deletionGracePeriodSeconds } = pod.metadata;
    const running = this.#running.get(uid);
    if (running) {
      const ids = [...running.containers.values()];
      await Promise.all(ids.map((id) => this.#cri.stopContainer(id, deletionGracePeriodSeconds ?? 30)));
      await this.#cri.stopPodSandbox(running.sandbox);
      await this.#cri.removePodSandbox(running.sandbox);
      this.#running.delete(uid);
      await removeCgroup(`/kubepods/burstable/pod${uid}`);
    }
    // As the kubelet does it: the name may belong to another pod by now (pkg/kubelet/status/status_manager.go).
    await this.#cluster.admin
      .delete(`/api/v1/namespaces/${namespace}/pods/${name}`, {
        gracePeriodSeconds: 0,
        preconditions: { uid },
      })
      .catch((error) => {
        if (!(error instanceof ApiError) || ![404, 409].includes(error.status)) throw error;
      });
  }
}
