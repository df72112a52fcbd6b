import type { ContainerExit, PodEnding } from "@nodekeeper/api/records";
import { isRecord, type KubeObject, recordOf, recordsOf } from "@nodekeeper/core/kube";

/** Memory limits of a pod's containers by container name, as quantities from the pod spec such as "64Mi". */
export type MemoryLimits = Readonly<Record<string, string>>;

const LONGEST_TEXT = 1_024;
const MOST_CONTAINERS = 50;

/** Reads how a Pod ends. Malformed fields count as unset. Never throws. */
export function endingOf({ metadata, status: given }: KubeObject): PodEnding {
  const status = recordOf(given);
  const graceSeconds = numberOf(metadata.deletionGracePeriodSeconds);
  const deleteBy = timeOf(metadata.deletionTimestamp);
  return {
    deletion:
      deleteBy === null
        ? null
        : { requestedAt: deleteBy - (graceSeconds ?? 0) * 1000, gracePeriodSeconds: graceSeconds },
    disruption: disruptionOf(status, metadata),
    phase: textOf(status.phase),
    reason: textOf(status.reason),
    message: textOf(status.message),
  };
}

/** Reads the exits of containers, init containers first: `lastState`, then `state` of each. Never throws. */
export function exitsOf({ status: given }: KubeObject): ContainerExit[] {
  const status = recordOf(given);
  return [status.initContainerStatuses, status.containerStatuses].flatMap(exitsIn);
}

/** Reads the memory limits of a Pod's containers. Containers without a limit are omitted. Never throws. */
export function memoryLimitsOf({ spec: given }: KubeObject): MemoryLimits {
  const spec = recordOf(given);
  const limits: Record<string, string> = {};
  for (const container of [...recordsOf(spec.initContainers), ...recordsOf(spec.containers)]) {
    const limit = textOf(recordOf(recordOf(container.resources).limits).memory);
    const name = textOf(container.name);
    if (name !== "" && limit !== "") limits[name] = limit;
  }
  return limits;
}

function disruptionOf(
  status: Record<string, unknown>,
  metadata: KubeObject["metadata"],
): PodEnding["disruption"] {
  const target = recordsOf(status.conditions).find(
    ({ type, status: value }) => type === "DisruptionTarget" && value === "True",
  );
  if (target === undefined) return null;
  return {
    reason: textOf(target.reason),
    message: textOf(target.message),
    at: timeOf(target.lastTransitionTime),
    ...managerOf(metadata.managedFields),
  };
}

// The key of the condition's item in a fieldsV1 set.
const DISRUPTION_ITEM = 'k:{"type":"DisruptionTarget"}';

// If several clients own parts of the condition, it is unknown which of them set it.
function managerOf(managedFields: unknown): { manager?: string } {
  const owners = recordsOf(managedFields).filter(({ fieldsV1 }) => {
    const conditions = recordOf(recordOf(recordOf(fieldsV1)["f:status"])["f:conditions"]);
    return DISRUPTION_ITEM in conditions;
  });
  const manager = owners.length === 1 ? textOf(owners[0]?.manager) : "";
  return manager === "" ? {} : { manager };
}

function exitsIn(statuses: unknown): ContainerExit[] {
  return recordsOf(statuses)
    .slice(0, MOST_CONTAINERS)
    .flatMap((status) => {
      const name = textOf(status.name);
      const states = [recordOf(status.lastState), recordOf(status.state)];
      return states.flatMap(({ terminated }) => (isRecord(terminated) ? [exitOf(name, terminated)] : []));
    });
}

function exitOf(name: string, terminated: Record<string, unknown>): ContainerExit {
  return {
    id: textOf(terminated.containerID).replace(/^[^:]*:\/\//, ""),
    name,
    exitCode: numberOf(terminated.exitCode),
    reason: textOf(terminated.reason),
    at: timeOf(terminated.finishedAt),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, LONGEST_TEXT) : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

// Go's zero time, "0001-01-01T00:00:00Z", counts as unset.
function timeOf(value: unknown): number | null {
  const at = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return at > 0 ? at : null;
}
