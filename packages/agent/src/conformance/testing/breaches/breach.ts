import type { PrepareDevicesRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { ServerError, Status } from "nice-grpc";
import type { RuleId } from "../../rules.ts";
import type { Trouble } from "../check-test-driver.ts";
import { type DriverParts, preparedDevice } from "../test-driver.ts";

/** The parts of a driver that break a rule. */
export type BrokenDriver = (trouble: Trouble) => Partial<DriverParts>;

/** A rule, what breaks it, and a driver that does so. */
export type Breach = readonly [rule: RuleId, what: string, driver: BrokenDriver];

/** An error of a driver. */
export const refuse = (why: string) => new ServerError(Status.INTERNAL, why);

/** The answer of a driver that keeps the contract. */
export const answerFor = (devices: PrepareDevicesRequest["devices"]) => ({
  devices: devices.map((device) => preparedDevice(device)),
});

/** Remembers which claims are prepared, and which were unprepared. */
export function claimTable() {
  const prepared = new Set<string>();
  const ended = new Set<string>();
  return {
    prepared,
    ended,
    prepare({ claim, devices }: PrepareDevicesRequest) {
      prepared.add(claim!.uid);
      return answerFor(devices);
    },
    unprepare({ claim }: { claim?: { uid: string } | undefined }) {
      if (prepared.delete(claim!.uid)) ended.add(claim!.uid);
      return {};
    },
  };
}
