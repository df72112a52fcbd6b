import type { ClaimToPrepare, ClaimToUnprepare, PreparedDevice } from "@nodekeeper/sdk";

/**
 * Returns the edits for each accelerator of a claim: an environment variable named after the accelerator, with the mode
 * from its configuration (`{ "mode": "timeSliced" }`; default: "exclusive"), and a device node that is /dev/null on the
 * node. Throws if the mode is unknown.
 */
export function prepareAccelerators({ devices }: ClaimToPrepare): PreparedDevice[] {
  return devices.map(({ request, pool, device, shareId, configuration }) => {
    let mode = "exclusive";
    for (const { parameters } of configuration) mode = modeIn(parameters) ?? mode;
    return {
      request,
      pool,
      device,
      ...(shareId ? { shareId } : {}),
      edits: {
        env: { [device.toUpperCase().replaceAll("-", "_")]: mode },
        deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
      },
    };
  });
}

/**
 * Returns the names of the accelerators that are free once a claim is unprepared. Omits those with `adminAccess`, for
 * monitoring: other claims may use them, so a driver of real devices must not reset them.
 */
export function freedAccelerators({ devices }: ClaimToUnprepare): string[] {
  return devices.filter(({ adminAccess }) => !adminAccess).map(({ device }) => device);
}

function modeIn(parameters: unknown): string | undefined {
  const mode = (parameters as { mode?: unknown } | null)?.mode;
  if (mode === undefined || mode === "exclusive" || mode === "timeSliced") return mode;
  // The message reaches those who describe the pod.
  throw new Error(`mode ${JSON.stringify(mode)} is neither "exclusive" nor "timeSliced"`);
}
