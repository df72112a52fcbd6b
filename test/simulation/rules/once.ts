import type { ClaimCall } from "../world/drivers.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

// Until the agent has received an answer of the driver and recorded it.
const UNTIL_RECORDED_MS = 1_000;
// A call that was sent before the end of the agent may arrive after it.
const ON_ITS_WAY_MS = 1;
// How long a driver may go on registering again.
const LONGEST_START_MS = 30_000;
// How long before a repeated call the kubelet's failed call may have ended: the agent waits for the containers meanwhile.
const LONGEST_UNPREPARE_MS = 60_000;

export const once: readonly Rule[] = [
  {
    promise:
      "A driver is called once to prepare a claim and once to unprepare it, unless its answer or what it had prepared was lost.",
    watch: (world) => {
      let seen = 0;
      // The last call for each claim, by driver and UID.
      const last = new Map<string, ClaimCall>();
      return () => {
        const { calls } = world.devices;
        for (; seen < calls.length; seen++) {
          const call = calls[seen]!;
          const key = `${call.driver}/${call.uid}`;
          const before = last.get(key);
          last.set(key, call);
          if (before && isRepeated(world, call, before))
            return `${call.isPrepare ? "prepare" : "unprepare"} ${call.devices} for ${call.uid} of ${call.driver} again`;
        }
        return undefined;
      };
    },
  },
];

function isRepeated({ history, faults, devices }: World, call: ClaimCall, before: ClaimCall): boolean {
  const { at, doneAt, isAccepted, process, endedAt = Number.POSITIVE_INFINITY } = before;
  if (call.isPrepare !== before.isPrepare || `${call.devices}` !== `${before.devices}`) return false;
  // Without a record the agent can't know whether the driver has unprepared the claim.
  if (call.devices.length === 0) return false;
  // If the driver registers again meanwhile, the answer does not count: it flapped, or another instance takes over.
  if (doneAt === undefined || !isAccepted || faults.flaps || (call.process !== process && call.at < endedAt))
    return false;
  const recordedAt = doneAt + UNTIL_RECORDED_MS;
  if (endedAt < recordedAt || history.boots.some((boot) => boot.at >= at)) return false;
  // A driver that stops while it starts registers again.
  if (
    history.slowStarts.some((start) => start.plugin === call.driver && call.at - start.at < LONGEST_START_MS)
  )
    return false;
  // What could not be recorded is done again.
  const unrecorded = [...history.full, ...history.readOnly, ...history.unwritten];
  if (isWithin(unrecorded, at, call.at)) return false;
  if (
    history.lives.some(
      ({ endedAt: end }) => end !== undefined && end >= at - ON_ITS_WAY_MS && end < recordedAt,
    )
  )
    return false;
  // The kubelet calls again if its call has failed, and then the agent does not rely on its record.
  const key = `${call.driver}/${call.uid}`;
  const since = at - LONGEST_UNPREPARE_MS;
  return !devices.kubelet.failedUnprepares.some(
    (failed) => failed.key === key && failed.at >= since && failed.at <= call.at,
  );
}

function isWithin(periods: readonly { from: number; to: number }[], from: number, to: number): boolean {
  return periods.some((period) => period.from <= to && period.to >= from);
}
