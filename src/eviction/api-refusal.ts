import { ApiStatusError } from "../kube/index.ts";
import { codeOf, messageOf, NodekeeperError } from "../lib/index.ts";
import type { KillEnd } from "./killer.ts";
import type { PodReference } from "./pods.ts";

/** What a call would have needed, for advice. */
export interface CallRights {
  verb: string;
  /** "pods/eviction" */
  resource: string;
}

/** The API server's own word that a pod of this name is not there. A 404 that says nothing of the pod is none. */
export function saysNoSuchPod(error: unknown, name: string): boolean {
  if (!(error instanceof ApiStatusError) || error.httpStatus !== 404) return false;
  const { kind, name: named } = error.summary;
  return kind === "pods" && named === name;
}

/**
 * What an error of a call that evicts means. No error but the pod's own 404 is ever read as "gone".
 * @param rights what the agent needs for the call
 */
export function resultOfError(error: unknown, pod: PodReference, rights: CallRights): KillEnd {
  const message = messageOf(error);
  if (saysNoSuchPod(error, pod.name)) return { kind: "gone", message: "404: the pod is no more" };
  const retryAfterMs = error instanceof NodekeeperError ? error.retryAfterMs : undefined;
  const again = (maybeSent: boolean): KillEnd => ({ kind: "retry", message, retryAfterMs, maybeSent });
  switch (codeOf(error)) {
    case "throttled":
      return budgetResult(error, pod, retryAfterMs) ?? again(false);
    case "forbidden":
      return forbidden(error, message, rights);
    case "invalid":
      return { kind: "failed", message: `the API server does not take it: ${message}` };
    case "unsupported":
      return {
        kind: "failed",
        message: `the API server knows no such call: ${message}; choose another killer`,
        isForbidden: true,
      };
    // Not of the pod, or of something that changed meanwhile: a fresh read decides.
    case "notFound":
    case "conflict":
    case "unauthenticated":
    case "exhausted":
      return again(false);
    case "unavailable":
      return tooManyBudgets(error) ?? again(true);
    default:
      return again(true);
  }
}

// With Retry-After the budget is only not counted yet; without, it allows nothing now and another pod gets its turn.
function budgetResult(
  error: unknown,
  pod: PodReference,
  retryAfterMs: number | undefined,
): KillEnd | undefined {
  if (!(error instanceof ApiStatusError)) return undefined;
  const cause = error.summary.causes.find(({ reason }) => reason === "DisruptionBudget");
  if (!cause) return undefined;
  const name = /disruption budget (\S+)/i.exec(cause.message)?.[1];
  const budget = name ? `the disruption budget ${pod.namespace}/${name}` : "a disruption budget";
  if (retryAfterMs)
    return {
      kind: "retry",
      message: `429: ${budget} is not observed yet: ${cause.message}`,
      retryAfterMs,
      maybeSent: false,
    };
  return {
    kind: "failed",
    message: `429: ${budget} allows no disruption: ${cause.message}`,
    isBudget: true,
  };
}

function tooManyBudgets(error: unknown): KillEnd | undefined {
  if (!(error instanceof ApiStatusError) || !/more than one PodDisruptionBudget/i.test(error.message))
    return undefined;
  return {
    kind: "failed",
    message: `${error.message}; a pod with two budgets can only be deleted`,
    isBudget: true,
  };
}

function forbidden(error: unknown, message: string, { verb, resource }: CallRights): KillEnd {
  // A budget that allows less than nothing is told as 403 too; it is the pod's matter, not of our rights.
  if (error instanceof ApiStatusError && /^poddisruptionbudgets?$/i.test(error.summary.kind))
    return { kind: "failed", message, isBudget: true };
  return {
    kind: "failed",
    message: `${message}; the agent needs the right to ${verb} ${resource}`,
    isForbidden: true,
  };
}
