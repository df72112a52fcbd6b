import type { ClaimToPrepare, ClaimToUnprepare, PreparedDevice } from "@nodekeeper/sdk";

/**
 * What a container gets of each accelerator of its claim: a variable that names it with its mode, as the claim's
 * configuration sets it (`{ "mode": "timeSliced" }`), and a device file. Simulated accelerators do what /dev/null does.
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
 * The accelerators that a claim leaves free. One that it had for monitoring (`adminAccess`) may be in use by other claims: a
 * driver of real devices must not reset it.
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
