import { DevicesQuarantined, type ErrorId, SliceFieldsDropped } from "@nodekeeper/api/errors";
import { droppedText } from "@nodekeeper/api/wording";
import type { DeviceProblem } from "../model/model.ts";
import type { DroppedField } from "../plan/features.ts";

/** Input for the Events about one driver's devices. */
export interface DeviceFindings {
  problems: readonly DeviceProblem[];
  /** Number of quarantined devices. */
  quarantined: number;
  /** Slices that the API server refuses, with its message. */
  refusedSlices: ReadonlyMap<string, string>;
  /** Reported fields that the API server does not store. */
  dropped: readonly DroppedField[];
}

/** An Event, and the error ID for its log line. */
export interface DeviceEvent {
  reason: "DevicesQuarantined" | "DeviceFieldsDropped";
  errorId: ErrorId;
  message: string;
}

// Limits Events about problems that change all the time.
const EVENT_INTERVAL_MS = 60_000;
const MOST_FIELDS_IN_EVENT = 3;

/** Decides which Events about one driver's devices are due. */
export class DeviceNews {
  readonly #sent = new Map<DeviceEvent["reason"], { text: string; at: number }>();

  /**
   * Returns the Events that differ from the last one sent for their reason, at most one per reason and minute. Devices
   * are counted by invalid field, so that devices that come and go cause only one Event.
   * @param now monotonic milliseconds
   */
  due(driver: string, findings: DeviceFindings, now: number): DeviceEvent[] {
    const events: DeviceEvent[] = [
      {
        reason: "DevicesQuarantined",
        errorId: DevicesQuarantined.id,
        message: quarantineText(driver, findings),
      },
      { reason: "DeviceFieldsDropped", errorId: SliceFieldsDropped.id, message: dropText(driver, findings) },
    ];
    return events.filter(({ reason, message }) => this.#isDue(reason, message, now));
  }

  #isDue(reason: DeviceEvent["reason"], text: string, now: number): boolean {
    const { text: before, at } = this.#sent.get(reason) ?? { text: "", at: Number.NEGATIVE_INFINITY };
    if (text === before) return false;
    if (text === "") {
      this.#sent.set(reason, { text, at });
      return false;
    }
    if (now - at < EVENT_INTERVAL_MS) return false;
    this.#sent.set(reason, { text, at: now });
    return true;
  }
}

// Empty if nothing is quarantined.
function quarantineText(driver: string, { problems, quarantined, refusedSlices }: DeviceFindings): string {
  const messages: string[] = [];
  if (problems.length > 0) {
    const byField = Map.groupBy(problems, ({ field, message }) => (field === "" ? message : field));
    const parts = [...byField].map(([field, some]) => {
      const [{ device, pool, message }] = some as [DeviceProblem];
      const name = device ? `${device} of pool ${pool}` : `pool ${pool}`;
      const what = field === message ? message : `${field}: ${message}`;
      return some.length === 1 ? `${name}: ${what}` : `${some.length} such as ${name}: ${what}`;
    });
    messages.push(`${quarantined} devices are quarantined: ${firstOf(parts)}`);
  }
  const [refused] = refusedSlices;
  if (refused) messages.push(`the API server refuses slice ${refused[0]}: ${refused[1]}`);
  return messages.length > 0 ? `Driver ${driver}: ${messages.join("; ")}` : "";
}

// Empty if nothing is dropped.
function dropText(driver: string, { dropped }: DeviceFindings): string {
  if (dropped.length === 0) return "";
  const byField = Map.groupBy(dropped, ({ field, feature = "" }) => `${feature} ${field}`);
  const parts = [...byField.values()].map(([first, ...others]) => {
    const more = others.length > 0 ? ", and others" : "";
    return `${droppedText(first as DroppedField)}${more}`;
  });
  return `Driver ${driver}: the API server does not store all that the driver reports: ${firstOf(parts)}`;
}

function firstOf(parts: readonly string[]): string {
  const shown = parts.slice(0, MOST_FIELDS_IN_EVENT);
  if (parts.length > shown.length) shown.push(`${parts.length - shown.length} more reasons`);
  return shown.join("; ");
}
