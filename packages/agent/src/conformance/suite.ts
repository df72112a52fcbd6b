import { messageOf } from "@nodekeeper/core/lib";
import { Bench, type ConformanceOptions } from "./bench.ts";
import type { Check } from "./check.ts";
import { deviceChecks } from "./checks/devices.ts";
import { hostileChecks } from "./checks/hostile.ts";
import { preparationChecks } from "./checks/preparation.ts";
import { processChecks } from "./checks/process.ts";
import { registrationChecks } from "./checks/registration.ts";
import { reportChecks, statusCheck } from "./checks/reports.ts";
import { DriverRun } from "./driver-run.ts";
import { type Finding, Skipped } from "./finding.ts";
import { type RuleId, rules } from "./rules.ts";

type Outcome = Pick<Finding, "result" | "message">;

/**
 * Checks a driver against the contract, as the agent and the kubelet would call it. Yields each result as soon as it
 * is known. Finally, unprepares its claims and ends the process that it started, even if the signal aborts. Throws
 * `invalid` if there is no driver to check, and the signal's reason.
 */
export async function* checkDriver(
  options: ConformanceOptions,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  await using run = new DriverRun(options);
  await using bench = new Bench(options, await run.start(signal), signal);
  const checks = [
    ...registrationChecks,
    ...deviceChecks,
    ...reportChecks,
    ...preparationChecks,
    statusCheck,
    ...hostileChecks,
    ...processChecks(run),
  ];
  const passed = new Set<RuleId>();
  let isLost = false;
  for (const check of checks) {
    const startedAt = options.clock.monotonic();
    const needed = check.needs.find((rule) => !passed.has(rule));
    const outcome: Outcome = isLost
      ? { result: "skip", message: "the driver no longer serves" }
      : needed === undefined
        ? await outcomeOf(check, bench)
        : { result: "skip", message: `needs ${needed}` };
    signal.throwIfAborted();
    if (outcome.result === "pass") passed.add(check.rule);
    yield { rule: check.rule, ...outcome, ms: options.clock.monotonic() - startedAt, ...rules[check.rule] };
    if (outcome.result === "fail") isLost = !(await serves(bench));
  }
}

async function outcomeOf(check: Check, bench: Bench): Promise<Outcome> {
  try {
    return { result: "pass", message: (await check.run(bench)) ?? "" };
  } catch (error) {
    return { result: error instanceof Skipped ? "skip" : "fail", message: messageOf(error) };
  }
}

async function serves(bench: Bench): Promise<boolean> {
  return await bench.checkServes().then(
    () => true,
    () => false,
  );
}
