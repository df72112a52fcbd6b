import type { KubeObject } from "@nodekeeper/core/kube";
import { fieldsText, sameTaint } from "../model/canonical.ts";
import type { CheckedDevice, StoredDevice, StoredSlice } from "../model/checked.ts";
import { taintsOf } from "../model/feature-bits.ts";
import type { DeviceTaint, SliceSpec } from "../model/model.ts";
import type { SliceWrite } from "../plan/plan.ts";

/** Returns the slice as it was sent, with the metadata and the taints' times from the answer. */
export function asSent(
  { spec, devices, counterSets }: SliceWrite,
  answer: KubeObject,
  stored: SliceSpec,
): StoredSlice {
  const { managedFields, ...metadata } = answer.metadata;
  const taints = new Map(stored.devices?.flatMap(({ name, taints }) => (taints ? [[name, taints]] : [])));
  return {
    metadata,
    name: metadata.name ?? "",
    driver: spec.driver,
    pool: spec.pool,
    fields: fieldsText(spec),
    devices: devices.map((device) => new SentDevice(device, taints.get(device.name))),
    counterSets: counterSets.map(({ fingerprint }) => fingerprint),
    isMarked: true,
  };
}

class SentDevice implements StoredDevice {
  readonly sent: CheckedDevice;
  readonly taints?: DeviceTaint[];

  constructor(sent: CheckedDevice, answered: DeviceTaint[] | undefined) {
    this.sent = sent;
    const taints = taintsOf(sent);
    if (!taints?.length) return;
    this.taints = taints.map((taint) => {
      const timeAdded = taint.timeAdded ?? answered?.find((other) => sameTaint(taint, other))?.timeAdded;
      return timeAdded === undefined ? taint : { ...taint, timeAdded };
    });
  }

  get name(): string {
    return this.sent.name;
  }

  get fingerprint(): string {
    return this.sent.fingerprint;
  }
}
