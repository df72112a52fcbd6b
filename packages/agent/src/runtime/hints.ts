import {
  type ContainerEventResponse,
  ContainerState,
  type ContainerStatus,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { Anomalies } from "./anomalies.ts";
import type { RuntimeCalls } from "./calls.ts";
import type { Owners } from "./owners.ts";
import type { HintedExit, RuntimeHint, RuntimeVersion } from "./types.ts";

/**
 * Returns the runtime's container events as hints. Ends when the runtime ends the stream. Throws
 * `unavailable` if the runtime is unreachable, and `unsupported` if it does not implement events. Flow
 * control follows the consumer, so events are not buffered.
 */
export async function* followHints(
  calls: RuntimeCalls,
  owners: Owners,
  anomalies: Anomalies,
  signal: AbortSignal,
): AsyncGenerator<RuntimeHint> {
  const events = calls.follow({ method: "GetContainerEvents" }, signal, (client, callSignal) =>
    client.getContainerEvents({}, { signal: callSignal }),
  );
  for await (const event of events) {
    yield {
      podUid: podOf(event, owners, anomalies),
      createdAt: event.createdAt,
      exits: event.containersStatuses.flatMap(exitOf),
    };
  }
}

function exitOf({ id, state, exitCode, reason }: ContainerStatus): HintedExit[] {
  return state === ContainerState.CONTAINER_EXITED ? [{ containerId: id, exitCode, reason }] : [];
}

// The sandbox status may be missing after a deletion. Its pod is known from earlier lists.
function podOf(event: ContainerEventResponse, owners: Owners, anomalies: Anomalies): string {
  const { containerId, podSandboxStatus } = event;
  const uid = podSandboxStatus?.metadata?.uid || owners.find(containerId)?.uid;
  if (!uid) {
    anomalies.report("eventOfNoPod", containerId);
    return "";
  }
  const { name = "", namespace = "" } = podSandboxStatus?.metadata ?? {};
  if (podSandboxStatus?.metadata && !owners.find(containerId))
    owners.remember(containerId, { uid, name, namespace });
  return uid;
}

/**
 * Returns whether a runtime sends each container event to all subscribers. containerd does since 2.0; in 1.7
 * all subscribers read from one channel, including streams whose reader has ended
 * (containerd/containerd#7318). CRI-O does. False for other runtimes, whose behavior is unknown.
 */
export function broadcastsEvents({ runtimeName, runtimeVersion }: RuntimeVersion): boolean {
  if (runtimeName === "cri-o") return true;
  const [major = ""] = runtimeVersion.replace(/^v/, "").split(".");
  return runtimeName === "containerd" && /^\d+$/.test(major) && Number(major) >= 2;
}
