import type { HealthResult } from "@nodekeeper/core/lib";
import type { DriverState } from "./driver-state.ts";

const SLOW_MS = 60_000;

/**
 * Names drivers for which the kubelet has not registered the agent for a minute; fails if these are all drivers.
 * @param now wall milliseconds
 */
export function registrationHealth(
  drivers: readonly DriverState[],
  registryDirectory: string,
  now: number,
): HealthResult {
  const plugins = drivers.flatMap(({ name, plugin }) => (plugin ? [{ name, plugin }] : []));
  const failing = plugins.filter(
    ({ plugin: { registration, startedAt } }) =>
      registration.state !== "registered" && now - startedAt >= SLOW_MS,
  );
  const names = failing.map(({ name, plugin: { registration } }) =>
    registration.state === "refused"
      ? `${name}: ${registration.reason}`
      : `${name}: the kubelet has not found ${registryDirectory}`,
  );
  return {
    // One driver's trouble is its own; where the kubelet takes none, the agent or its mounts are suspect.
    ok: failing.length === 0 || failing.length < plugins.length,
    message:
      names.length > 0 ? `not registered with the kubelet: ${names.join("; ")}` : `${plugins.length} drivers`,
    errorId: "NK1509",
  };
}
