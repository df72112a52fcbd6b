import type { ContainerStatus, PodStatus } from "../runtime/index.ts";
import type { Transition } from "./diff.ts";
import type { NewEvent } from "./events.ts";
import type { Hints } from "./hints.ts";
import { containerIdentity, type PodRecord } from "./records.ts";

/** Reason of the PodSync event for a pod that was removed before it could be inspected again. */
export const INSPECTION_FAILED = "InspectionFailed";

/** Creates the event for a pod whose previous inspection failed. */
export function podSync({ identity }: PodRecord, reason: string): NewEvent {
  return { type: "PodSync", pod: identity, container: undefined, exitCode: undefined, reason };
}

/**
 * Creates the events for a pod's transitions, in order. Exit codes come from the inspection, or from the
 * runtime's container event if the container was removed before it could be inspected.
 * @param status the inspection, which may contain containers that were removed since; undefined if the pod was
 *   removed before it could be inspected
 */
export function podEvents(
  record: PodRecord,
  transitions: readonly Transition[],
  status: PodStatus | undefined,
  hints: Pick<Hints, "exitOf" | "removed">,
): NewEvent[] {
  const events: NewEvent[] = [];
  const exited = new Map<string, ContainerStatus>();
  for (const container of status?.containers ?? [])
    if (container.state === "exited") exited.set(container.id, container);
  for (const { type, container } of transitions) {
    if (type === "ContainerChanged") continue;
    const { id } = container;
    const exit = type === "ContainerDied" ? (exited.get(id) ?? hints.exitOf(id)) : undefined;
    events.push({
      type,
      pod: record.identity,
      container: containerIdentity(record, container),
      exitCode: exit?.exitCode,
      reason: exit?.reason ?? "",
    });
    if (type !== "ContainerRemoved") continue;
    record.containers.delete(id);
    hints.removed(id);
  }
  return events;
}
