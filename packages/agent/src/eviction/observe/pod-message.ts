import {
  type ContainerState,
  type DeepPartial,
  Pod,
  type Quantity,
} from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";

/**
 * Converts a pod in the API server's JSON to the message that is sent to plugins. Keeps only declared fields. Times,
 * quantities and volumes (inlined in JSON) have a different structure; all other fields have the same names.
 */
export function podMessageOf(object: KubeObject): Pod {
  const { metadata, spec, status } = object as JsonPod;
  return Pod.fromPartial({
    metadata: {
      ...metadata,
      creationTimestamp: timeOf(metadata.creationTimestamp),
      deletionTimestamp: timeOf(metadata.deletionTimestamp),
    },
    spec: {
      ...spec,
      containers: spec?.containers?.map(containerOf),
      initContainers: spec?.initContainers?.map(containerOf),
      volumes: spec?.volumes?.map(volumeOf),
      overhead: quantitiesOf(spec?.overhead),
      resources: spec?.resources && resourcesOf(spec.resources),
    },
    status: {
      ...status,
      startTime: timeOf(status?.startTime),
      conditions: status?.conditions?.map((condition) => ({
        ...condition,
        lastProbeTime: timeOf(condition.lastProbeTime),
        lastTransitionTime: timeOf(condition.lastTransitionTime),
      })),
      containerStatuses: status?.containerStatuses?.map(containerStatusOf),
      initContainerStatuses: status?.initContainerStatuses?.map(containerStatusOf),
    },
  });
}

function containerOf(container: JsonContainer) {
  return { ...container, resources: resourcesOf(container.resources ?? {}) };
}

function resourcesOf({ requests, limits }: JsonResources) {
  return { requests: quantitiesOf(requests), limits: quantitiesOf(limits) };
}

function volumeOf({ name, hostPath, emptyDir, persistentVolumeClaim }: JsonVolume) {
  const sizeLimit = emptyDir?.sizeLimit;
  return {
    name,
    volumeSource: {
      hostPath,
      emptyDir: emptyDir && {
        medium: emptyDir.medium,
        sizeLimit: sizeLimit ? { string: sizeLimit } : undefined,
      },
      persistentVolumeClaim,
    },
  };
}

function containerStatusOf(status: JsonContainerStatus) {
  return { ...status, state: stateOf(status.state), lastState: stateOf(status.lastState) };
}

function stateOf(state: JsonContainerState | undefined): DeepPartial<ContainerState> | undefined {
  return (
    state && {
      waiting: state.waiting,
      running: state.running && { startedAt: timeOf(state.running.startedAt) },
      terminated: state.terminated && {
        ...state.terminated,
        startedAt: timeOf(state.terminated.startedAt),
        finishedAt: timeOf(state.terminated.finishedAt),
      },
    }
  );
}

function quantitiesOf(list: Record<string, string> = {}): Record<string, Quantity> {
  return Object.fromEntries(Object.entries(list).map(([name, string]) => [name, { string: String(string) }]));
}

// A pod's times are whole seconds. Malformed ones are omitted.
function timeOf(text: string | null | undefined) {
  const milliseconds = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? undefined : { seconds: BigInt(Math.floor(milliseconds / 1000)) };
}

/** A Pod in the API server's JSON: the parts whose names or structure differ from the stripped message. */
interface JsonPod {
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

interface JsonContainer {
  name: string;
  resources?: JsonResources;
}

interface JsonResources {
  requests?: Record<string, string>;
  limits?: Record<string, string>;
}

interface JsonVolume {
  name: string;
  hostPath?: { path: string; type?: string };
  emptyDir?: { medium?: string; sizeLimit?: string };
  persistentVolumeClaim?: { claimName: string; readOnly?: boolean };
}

interface JsonContainerStatus {
  name: string;
  state?: JsonContainerState;
  lastState?: JsonContainerState;
}

interface JsonContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: { exitCode: number; startedAt?: string; finishedAt?: string };
}
