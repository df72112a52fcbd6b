import { randomUUID } from "node:crypto";
import type { KubeObject } from "@nodekeeper/core/kube";
import { NODE, type TestCluster } from "../cluster.ts";
import type { RequestRecorder } from "./request-recorder.ts";

/** A pod whose ending is played. */
export interface PlayedPod {
  name: string;
  uid: string;
}

/** Clients other than the agent, as they act on pods. All their requests go through the recorder. */
export class OtherClients {
  readonly #cluster: TestCluster;
  readonly #recorder: RequestRecorder;

  constructor(cluster: TestCluster, recorder: RequestRecorder) {
    this.#cluster = cluster;
    this.#recorder = recorder;
  }

  /** The pod as the API server has it; undefined if it is gone or another pod has its name. */
  find({ name, uid }: PlayedPod): KubeObject | undefined {
    const pod = this.#cluster.server.store.get("pods", name, "default");
    return pod?.metadata.uid === uid ? pod : undefined;
  }

  async delete(client: string, { name, uid }: PlayedPod, gracePeriodSeconds?: number): Promise<void> {
    const body = { kind: "DeleteOptions", apiVersion: "v1", gracePeriodSeconds, preconditions: { uid } };
    await this.#send(client, "DELETE", `/${name}`, body);
  }

  async evict(client: string, { name, uid }: PlayedPod): Promise<void> {
    const metadata = { name, namespace: "default" };
    const body = {
      kind: "Eviction",
      apiVersion: "policy/v1",
      metadata,
      deleteOptions: { preconditions: { uid } },
    };
    await this.#send(client, "POST", `/${name}/eviction`, body);
  }

  /** Sets fields of the status; conditions are added to those that it has. */
  async setStatus(client: string, pod: PlayedPod, status: Record<string, unknown>): Promise<void> {
    const found = this.find(pod);
    if (!found) return;
    const { conditions: before = [] } = (found.status ?? {}) as { conditions?: object[] };
    const { conditions = [], ...rest } = status as { conditions?: object[] };
    const added = conditions.map((condition) => ({
      status: "True",
      lastTransitionTime: new Date().toISOString(),
      ...condition,
    }));
    await this.#send(client, "PATCH", `/${pod.name}/status`, {
      status: { ...rest, conditions: [...before, ...added] },
    });
  }

  /** Creates another pod of the same name, as a StatefulSet does. Returns its UID. */
  async createAgain({ name }: PlayedPod): Promise<string> {
    const spec = { nodeName: NODE, containers: [{ name: "app", image: "app" }] };
    const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    const metadata = { name, namespace: "default" };
    const body = { kind: "Pod", apiVersion: "v1", metadata, spec, status };
    const created = await this.#send("kube-controller-manager", "POST", "", body);
    return created.metadata.uid!;
  }

  /** Ends a terminating pod as the kubelet does: its containers have exited, then it is deleted. */
  async finish(pod: PlayedPod): Promise<void> {
    const found = this.find(pod);
    if (!found?.metadata.deletionTimestamp) return;
    const { containerStatuses } = (found.status ?? {}) as { containerStatuses?: unknown[] };
    if (!containerStatuses)
      await this.setStatus("kubelet", pod, { containerStatuses: [exited(143, "Error")] });
    await this.delete("kubelet", pod, 0);
  }

  async #send(client: string, method: string, path: string, body: object): Promise<KubeObject> {
    const response = await fetch(`${this.#recorder.url}/api/v1/namespaces/default/pods${path}`, {
      method,
      headers: {
        "user-agent": `${client}/v1.35.0`,
        "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
      },
      body: JSON.stringify(body),
    });
    return (await response.json()) as KubeObject;
  }
}

/** How a pod ends by somebody other than the agent. */
export interface Ending {
  /** What happens, up to the moment from which the kubelet ends the pod. */
  strike: (others: OtherClients, pod: PlayedPod) => Promise<void>;
  /** Whether the kubelet ends it at once; otherwise it terminates for a while, or the object stays. */
  isImmediate?: boolean;
  /** Whether somebody other than the agent ends the pod: false if it runs on. */
  endsPod: boolean;
}

function exited(exitCode: number, reason: string) {
  const finishedAt = new Date().toISOString();
  return {
    name: "app",
    state: { terminated: { exitCode, reason, containerID: `containerd://${randomUUID()}`, finishedAt } },
  };
}

const disruptedBy = (reason: string, message: string) => ({
  conditions: [{ type: "DisruptionTarget", reason, message }],
});

/** The endings of the matrix by their names, which are those of the pods too. */
export const endings: Readonly<Record<string, Ending>> = {
  evicted: { strike: async () => {}, endsPod: false },
  user: { strike: (others, pod) => others.delete("kubectl", pod, 30), endsPod: true },
  drained: { strike: (others, pod) => others.evict("kubectl", pod), endsPod: true },
  controller: {
    strike: (others, pod) => others.delete("kube-controller-manager", pod),
    isImmediate: true,
    endsPod: true,
  },
  kubelet: {
    strike: (others, pod) =>
      others.setStatus("kubelet", pod, {
        phase: "Failed",
        reason: "Evicted",
        message: "The node was low on resource: memory.",
        ...disruptedBy("TerminationByKubelet", "The node was low on resource: memory."),
      }),
    endsPod: true,
  },
  preempted: {
    async strike(others, pod) {
      const why = disruptedBy(
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate another pod",
      );
      await others.setStatus("kube-scheduler", pod, why);
      await others.delete("kube-scheduler", pod);
    },
    isImmediate: true,
    endsPod: true,
  },
  tainted: {
    async strike(others, pod) {
      const why = disruptedBy("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint");
      await others.setStatus("kube-controller-manager", pod, why);
      await others.delete("kube-controller-manager", pod);
    },
    endsPod: true,
  },
  shutdown: {
    strike: (others, pod) =>
      others.setStatus("kubelet", pod, {
        phase: "Failed",
        reason: "Terminated",
        message: "Pod was terminated in response to imminent node shutdown.",
        ...disruptedBy("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."),
      }),
    endsPod: true,
  },
  oom: {
    async strike(others, pod) {
      const { state } = exited(137, "OOMKilled");
      const running = { name: "app", restartCount: 1, state: { running: {} }, lastState: state };
      await others.setStatus("kubelet", pod, { containerStatuses: [running] });
    },
    endsPod: false,
  },
  crash: {
    strike: (others, pod) =>
      others.setStatus("kubelet", pod, { phase: "Failed", containerStatuses: [exited(1, "Error")] }),
    endsPod: true,
  },
  job: {
    strike: (others, pod) =>
      others.setStatus("kubelet", pod, { phase: "Succeeded", containerStatuses: [exited(0, "Completed")] }),
    endsPod: true,
  },
  recreated: {
    async strike(others, pod) {
      await others.delete("kubectl", pod);
      await others.finish(pod);
      await others.createAgain(pod);
    },
    isImmediate: true,
    endsPod: true,
  },
};
