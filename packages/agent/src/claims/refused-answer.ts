import { DriverAnswerRefused } from "@nodekeeper/api/errors";
import { errorIdOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { DeviceIdentity } from "./allocation.ts";

/** A driver's answer to PrepareDevices is refused. */
export class RefusedAnswer extends NodekeeperError {
  /** Undefined if the refusal does not concern a single device. */
  readonly device: DeviceIdentity | undefined;

  constructor(problem: string, device?: DeviceIdentity, cause?: unknown) {
    super("invalid", problem, { id: errorIdOf(cause) ?? DriverAnswerRefused.id });
    this.device = device;
  }
}

/** Runs `work` and returns its result. Throws its errors as `RefusedAnswer`, prefixed by the part of the answer. */
export async function checking<T>(
  part: string,
  device: DeviceIdentity | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new RefusedAnswer(`${part}: ${messageOf(error)}`, device, error);
  }
}
