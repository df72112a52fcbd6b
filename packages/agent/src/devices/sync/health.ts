import type { HealthCheck } from "@nodekeeper/core/lib";
import type { Driver } from "./driver.ts";
import type { WriteProblem } from "./driver-sync.ts";

const TIMEOUT_MS = 60_000;
const nonRetryable = new Set(["forbidden", "unauthenticated", "unsupported"]);

type Health = ReturnType<HealthCheck["check"]>;

/**
 * Whether drivers are heard. One driver that fails is its own problem; where all have failed for a minute the agent is
 * suspect.
 * @param now monotonic milliseconds
 */
export function streamHealth(drivers: readonly Driver[], now: number): Health {
  const streaming = drivers.filter(({ state }) => state !== "none");
  const age = ({ enteredAt }: Driver) => now - enteredAt;
  const failing = streaming.filter(
    (driver) => driver.state === "failing" || (driver.state === "waiting" && age(driver) >= TIMEOUT_MS),
  );
  const names = failing.map((driver) => {
    const why = driver.state === "waiting" ? "the driver sent no devices" : driver.error;
    return `${driver.name} for ${Math.round(age(driver) / 1000)} s: ${why}`;
  });
  const message = names.length > 0 ? `failing: ${names.join("; ")}` : `${streaming.length} drivers`;
  const isAll = failing.length > 0 && failing.length === streaming.length;
  return { ok: !isAll || failing.some((driver) => age(driver) < TIMEOUT_MS), message, errorId: "NK1502" };
}

export interface SliceHealthInput {
  drivers: readonly Driver[];
  /** The health of the watch; undefined without one. */
  watch: Health | undefined;
  /** Why nothing at all can be written. */
  problem: WriteProblem | undefined;
  /** Why the slices of one driver can't be written. */
  problemOf: (driver: string) => WriteProblem | undefined;
  /** How many slices of the agent the API server has. */
  slices: number;
  /** Monotonic milliseconds. */
  now: number;
}

/**
 * Whether slices are written. A driver whose slices alone are refused is shown and fails nothing; where none can be
 * written for a minute, or for a reason that will not pass, the agent is suspect.
 */
export function sliceHealth({ drivers, watch, problem, problemOf, slices, now }: SliceHealthInput): Health {
  if (watch && !watch.ok && drivers.length > 0)
    return { ok: false, message: `slices not watched: ${watch.message}`, errorId: watch.errorId };
  const isBad = ({ code, since }: WriteProblem) => nonRetryable.has(code) || now - since >= TIMEOUT_MS;
  const text = ({ message, since }: WriteProblem) => `${Math.round((now - since) / 1000)} s: ${message}`;
  if (problem) {
    const message = `slices not written for ${text(problem)}`;
    return { ok: !isBad(problem), message, errorId: problem.errorId };
  }
  const publishing = drivers.filter((driver) => driver.messageAt !== undefined);
  const problems = publishing.flatMap(({ name }) => {
    const own = problemOf(name);
    return own ? [{ name, problem: own }] : [];
  });
  if (problems.length === 0) return { ok: true, message: `${slices} slices` };
  const names = problems.map(({ name, problem: own }) => `${name} for ${text(own)}`);
  const isAll = problems.length === publishing.length;
  return {
    ok: !isAll || !problems.every(({ problem: own }) => isBad(own)),
    message: `slices not written: ${names.join("; ")}`,
    errorId: problems[0]?.problem.errorId,
  };
}
