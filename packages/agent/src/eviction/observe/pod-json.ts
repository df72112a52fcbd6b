import type { ObjectMeta } from "@nodekeeper/core/kube";

/** A Pod in the API server's JSON: the parts whose names or structure differ from the stripped message. */
export interface JsonPod {
  metadata: ObjectMeta;
  spec?: {
    containers?: JsonContainer[];
    initContainers?: JsonContainer[];
    volumes?: JsonVolume[];
    overhead?: Record<string, string>;
    resources?: JsonResources;
  };
  status?: {
    startTime?: string;
    conditions?: { type: string; lastProbeTime?: string | null; lastTransitionTime?: string | null }[];
    containerStatuses?: JsonContainerStatus[];
    initContainerStatuses?: JsonContainerStatus[];
  };
}

export interface JsonContainer {
  name: string;
  resources?: JsonResources;
}

export interface JsonResources {
  requests?: Record<string, string>;
  limits?: Record<string, string>;
}

export interface JsonVolume {
  name: string;
  hostPath?: { path: string; type?: string };
  emptyDir?: { medium?: string; sizeLimit?: string };
  persistentVolumeClaim?: { claimName: string; readOnly?: boolean };
}

export interface JsonContainerStatus {
  name: string;
  state?: JsonContainerState;
  lastState?: JsonContainerState;
}

export interface JsonContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: { exitCode: number; startedAt?: string; finishedAt?: string };
}
