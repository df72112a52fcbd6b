import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";

/** The fields of a Pod that the kubelet reads and writes, as JSON. */
export interface JsonPod extends KubeObject {
  metadata: ObjectMeta & { deletionGracePeriodSeconds?: number };
  spec?: {
    containers?: JsonContainer[];
    resourceClaims?: { name: string; resourceClaimTemplateName?: string }[];
    restartPolicy?: "Always" | "OnFailure" | "Never";
  };
  status?: JsonPodStatus;
}

export interface JsonContainer {
  name: string;
  image?: string;
  resources?: { requests?: Record<string, string> };
}

export interface JsonPodStatus {
  phase?: string;
  hostIP?: string;
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  conditions?: JsonCondition[];
  containerStatuses?: JsonContainerStatus[];
}

export interface JsonCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
}

export interface JsonContainerStatus {
  name: string;
  image: string;
  imageID: string;
  containerID: string;
  ready: boolean;
  started: boolean;
  restartCount: number;
  state: JsonContainerState;
}

export type JsonContainerState =
  | { waiting: { reason: string } }
  | { running: { startedAt: string } }
  | {
      terminated: {
        exitCode: number;
        reason: string;
        startedAt: string;
        finishedAt: string;
        containerID: string;
      };
    };

/** Returns whether a pod has terminated. */
export function isFinished({ status }: JsonPod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}
