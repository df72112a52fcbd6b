import {
  type ContainerEventResponse,
  ContainerState,
  type ContainerStatus,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { RuntimeCalls } from "./calls.ts";
import type { Oddities } from "./oddities.ts";
import type { Owners } from "./owners.ts";
import type { HintedExit, RuntimeHint } from "./types.ts";

/**
 * The runtime's events as hints. It ends when the runtime ends the stream, and throws where the runtime can't be
 * reached (`unavailable`) or has no events (`unsupported`). A slow consumer slows the stream: nothing piles up here.
 */
export async function* followHints(
  calls: RuntimeCalls,
  owners: Owners,
  oddities: Oddities,
  signal: AbortSignal,
): AsyncGenerator<RuntimeHint> {
  const events = calls.follow({ method: "GetContainerEvents" }, signal, (client, callSignal) =>
    client.getContainerEvents({}, { signal: callSignal }),
  );
  for await (const event of events) {
    yield {
      podUid: podOf(event, owners, oddities),
      createdAt: event.createdAt,
      exits: event.containersStatuses.flatMap(exitOf),
    };
  }
}

function exitOf({ id, state, exitCode, reason }: ContainerStatus): HintedExit[] {
  return state === ContainerState.CONTAINER_EXITED ? [{ containerId: id, exitCode, reason }] : [];
}

// The sandbox' status may be missing after a deletion; its pod was learnt from the lists.
function podOf(event: ContainerEventResponse, owners: Owners, oddities: Oddities): string {
  const { containerId, podSandboxStatus } = event;
  const uid = podSandboxStatus?.metadata?.uid || owners.find(containerId)?.uid;
  if (!uid) {
    oddities.report("eventOfNoPod", containerId);
    return "";
  }
  const { name = "", namespace = "" } = podSandboxStatus?.metadata ?? {};
  if (podSandboxStatus?.metadata && !owners.find(containerId))
    owners.remember(containerId, { uid, name, namespace });
  return uid;
}
