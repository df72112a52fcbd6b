import type { ContainerStatus, PodStatus } from "../runtime/index.ts";
import type { Transition } from "./diff.ts";
import type { NewEvent } from "./events.ts";
import type { HintedExits } from "./hinted-exits.ts";
import { containerIdentity, type PodRecord } from "./records.ts";

/**
 * The events of a pod's transitions, in their order. Exit codes are those of the inspection; of a container that was
 * removed before it could be inspected, that of the runtime's own event, where there was one.
 * @param status undefined for a pod that the runtime no longer has
 */
export function podEvents(
  record: PodRecord,
  transitions: readonly Transition[],
  status: PodStatus | undefined,
  hintedExits: Pick<HintedExits, "get">,
): NewEvent[] {
  const events: NewEvent[] = [];
  const exited = new Map<string, ContainerStatus>();
  for (const container of status?.containers ?? [])
    if (container.state === "exited") exited.set(container.id, container);
  for (const { type, container } of transitions) {
    if (type === "ContainerChanged") continue;
    const { id } = container;
    const exit = type === "ContainerDied" ? (exited.get(id) ?? hintedExits.get(id)) : undefined;
    events.push({
      type,
      pod: record.identity,
      container: containerIdentity(record, container),
      exitCode: exit?.exitCode,
      reason: exit?.reason ?? "",
    });
    if (type === "ContainerRemoved") record.containers.delete(id);
  }
  return events;
}
