import {
  customNodeResource,
  type DevicePool,
  metadata,
  node,
  type ReportContent,
  status,
} from "@nodekeeper/sdk";

/** What a plugin of the soak is to report. A value above 0 counts up with each change. */
export interface Said {
  value: number;
  /** So many messages come before the one that counts. */
  burst: number;
  /** Size of one more field in each of them, bytes. Reporters only. */
  bulk: number;
  /** Drivers only. */
  devices: number;
}

/** A reporter's widgets in the CNR and its label of the Node. */
export function contentsOf(name: string, { value, bulk }: Pick<Said, "value" | "bulk">): ReportContent[] {
  const resources = { capacity: { [`widgets.example/${name}`]: String(value) } };
  return [
    customNodeResource(
      status("resources", resources),
      ...(bulk > 0 ? [status(`bulk-${name}`, "x".repeat(bulk))] : []),
    ),
    node(metadata("labels", { [`example.dev/${name}`]: `v${value}` })),
  ];
}

/** A driver's pool. Every tenth device carries the value in its name, and the one after it is tainted. */
export function poolOf({ value, devices }: Pick<Said, "value" | "devices">): DevicePool {
  return {
    devices: Array.from({ length: devices }, (_, at) => ({
      name: at % 10 === 0 ? `device-${at}-v${value}` : `device-${at}`,
      attributes: { index: { int: BigInt(at) }, changes: { int: BigInt(value) } },
      ...(at % 10 === 1 ? { taints: [{ key: "example.dev/broken", effect: "NoSchedule" }] } : {}),
    })),
  };
}

/** The devices of `poolOf` that the scheduler may give to any claim. */
export function allocatableOf(said: Pick<Said, "value" | "devices">): string[] {
  return (poolOf(said).devices ?? []).flatMap(({ name, taints }) => (name && !taints ? [name] : []));
}
