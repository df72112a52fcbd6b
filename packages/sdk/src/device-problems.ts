import type {
  DriverFeedbackServiceImplementation,
  Problem,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { toServerError } from "@nodekeeper/core/grpc";
import type { Logger } from "@nodekeeper/core/lib";

/**
 * A part of the driver's reports or answers that the agent does not publish or accept. `pool`, `device` and `claimUid`
 * are undefined if the problem does not concern a single one.
 */
export interface DriverProblem {
  /** Of the catalogue of errors, docs/errors.md. */
  errorId: string;
  message: string;
  /** As published: the node's name for a pool without a name. */
  pool?: string;
  device?: string;
  claimUid?: string;
  since: Date;
}

/**
 * Called with all problems that exist now (at most 1,000), when the agent connects and after each change; an empty list
 * if there are none. The agent calls again if it throws.
 */
export type ProblemHandler = (problems: DriverProblem[], signal: AbortSignal) => Promise<void> | void;

/** Serves the agent's feedback to the author's handler. */
export function feedbackService(onProblems: ProblemHandler): DriverFeedbackServiceImplementation {
  return {
    async reportProblems({ problems }, { signal }) {
      try {
        await onProblems(problems.map(driverProblem), signal);
        return {};
      } catch (error) {
        throw toServerError(error);
      }
    },
  };
}

/** Returns the default handler: logs each new problem once, and once when it has ended. */
export function problemLog(log: Logger): ProblemHandler {
  let known = new Map<string, DriverProblem>();
  return (problems) => {
    const present = new Map(problems.map((problem) => [keyOf(problem), problem]));
    for (const [key, problem] of present)
      if (!known.has(key)) log.warn({ ...problem }, `the agent reports a problem: ${problem.message}`);
    for (const [key, problem] of known)
      if (!present.has(key)) log.warn({ ...problem }, `a problem has ended: ${problem.message}`);
    known = present;
  };
}

// Without the time: an agent that restarted may know another one.
function keyOf({ errorId, message, pool, device, claimUid }: DriverProblem): string {
  return JSON.stringify([errorId, pool, device, claimUid, message]);
}

function driverProblem({ errorId, message, pool, device, claimUid, since }: Problem): DriverProblem {
  return {
    errorId,
    message,
    pool: pool || undefined,
    device: device || undefined,
    claimUid: claimUid || undefined,
    since: new Date(Number(since)),
  };
}
