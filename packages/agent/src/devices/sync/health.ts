import { DeviceStreamFailed } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import type { HealthCheck } from "@nodekeeper/core/lib";
import type { Driver } from "./driver.ts";
import type { WriteProblem } from "./driver-sync.ts";
import type { Sessions } from "./session.ts";

const TIMEOUT_MS = 60_000;
const nonRetryable = new Set(["forbidden", "unauthenticated", "unsupported"]);

type Health = ReturnType<HealthCheck["check"]>;

/**
 * Checks that drivers report. A single failing driver does not fail the check. If all drivers have failed for a minute,
 * the cause is probably the agent, and the check fails.
 * @param now monotonic milliseconds
 */
export function streamHealth(drivers: readonly Driver[], now: number): Health {
  const streaming = drivers.filter(({ standing }) => standing.state !== "none");
  const age = ({ standing: { enteredAt, unresponsive } }: Driver) =>
    now - (unresponsive?.enteredAt ?? enteredAt);
  const failing = streaming.filter(
    (driver) =>
      driver.standing.unresponsive ||
      driver.standing.state === "failing" ||
      (driver.standing.state === "waiting" && age(driver) >= TIMEOUT_MS),
  );
  const names = failing.map((driver) => {
    const { state, error, unresponsive } = driver.standing;
    const why = unresponsive?.reason ?? (state === "waiting" ? "the driver sent no devices" : error);
    return `${driver.name} for ${Math.round(age(driver) / 1000)} s: ${why}`;
  });
  const message = names.length > 0 ? `failing: ${names.join("; ")}` : counted(streaming.length, "driver");
  const isAll = failing.length > 0 && failing.length === streaming.length;
  return {
    ok: !isAll || failing.some((driver) => age(driver) < TIMEOUT_MS),
    message,
    errorId: DeviceStreamFailed.id,
  };
}

/**
 * Checks that slices are written. A single driver whose slices are refused is shown but does not fail the check. The
 * check fails if no driver's slices could be written for a minute, or if the reasons are non-retryable.
 * @param problemOf returns why the slices of a driver can't be written
 * @param now monotonic milliseconds
 */
export function sliceHealth(
  drivers: readonly Driver[],
  sessions: Sessions,
  problemOf: (driver: string) => WriteProblem | undefined,
  now: number,
): Health {
  const { problem } = sessions;
  const watch = sessions.watchHealth();
  if (watch && !watch.ok && drivers.length > 0)
    return { ok: false, message: `slices not watched: ${watch.message}`, errorId: watch.errorId };
  const isBad = ({ code, since }: WriteProblem) => nonRetryable.has(code) || now - since >= TIMEOUT_MS;
  const text = ({ message, since }: WriteProblem) => `${Math.round((now - since) / 1000)} s: ${message}`;
  if (problem) {
    const message = `slices not written for ${text(problem)}`;
    return { ok: !isBad(problem), message, errorId: problem.errorId };
  }
  const publishing = drivers.filter((driver) => driver.standing.messageAt !== undefined);
  const problems = publishing.flatMap(({ name }) => {
    const own = problemOf(name);
    return own ? [{ name, problem: own }] : [];
  });
  if (problems.length === 0)
    return { ok: true, message: counted(sessions.current?.cache.size ?? 0, "slice") };
  const names = problems.map(({ name, problem: own }) => `${name} for ${text(own)}`);
  const isAll = problems.length === publishing.length;
  return {
    ok: !isAll || !problems.every(({ problem: own }) => isBad(own)),
    message: `slices not written: ${names.join("; ")}`,
    errorId: problems[0]?.problem.errorId,
  };
}
