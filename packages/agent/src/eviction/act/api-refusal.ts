import type { BudgetStatus, PodReference } from "@nodekeeper/api/decide";
import { ApiStatusError } from "@nodekeeper/core/kube";
import { codeOf, messageOf, requestedWaitOf } from "@nodekeeper/core/lib";
import type { KillEnd, KillResult } from "./killer.ts";

/** The RBAC right that a call needs. The error message names it if it is missing. */
export interface CallRights {
  verb: string;
  /** For example "pods/eviction". */
  resource: string;
}

/**
 * Returns whether an error is the API server's 404 for the pod of this name. A 404 whose Status does not name the pod,
 * such as a proxy's, is not.
 */
export function isPodNotFound(error: unknown, name: string): boolean {
  if (!(error instanceof ApiStatusError) || error.httpStatus !== 404) return false;
  const { kind, name: named } = error.summary;
  return kind === "pods" && named === name;
}

/**
 * Maps the error of an Eviction API or DELETE call to the result of the attempt. Only the 404 for the pod itself means
 * that the pod was deleted.
 * @param rights the right that the call needs
 */
export function resultOfError(
  error: unknown,
  pod: PodReference,
  rights: CallRights,
): Exclude<KillResult, { kind: "accepted" }> {
  const message = messageOf(error);
  if (isPodNotFound(error, pod.name)) return { kind: "deleted", seen: "pod deleted" };
  const retryAfterMs = requestedWaitOf(error);
  const again = (maybeSent: boolean) => ({ kind: "retry" as const, message, retryAfterMs, maybeSent });
  switch (codeOf(error)) {
    case "throttled":
      return budgetResult(error, pod, retryAfterMs) ?? { ...again(false), isThrottled: true };
    case "forbidden":
      return forbidden(error, message, rights);
    case "invalid":
      return { kind: "failed", message: `rejected by the API server as invalid: ${message}` };
    case "unsupported":
      return {
        kind: "failed",
        message: `not supported by the API server: ${message}; configure another killer`,
        isForbidden: true,
      };
    case "conflict":
      return { ...again(false), isConflict: true };
    // Not about this pod: the next attempt reads the pod again.
    case "notFound":
    case "unauthenticated":
    case "exhausted":
      return again(false);
    case "unavailable":
      return tooManyBudgets(error) ?? again(true);
    default:
      return again(true);
  }
}

// pkg/registry/core/pod/storage/eviction.go: with Retry-After, the disruption controller has not observed the budget's
// generation yet; without it, the budget allows no disruption now.
function budgetResult(
  error: unknown,
  pod: PodReference,
  retryAfterMs: number | undefined,
): KillEnd | undefined {
  if (!(error instanceof ApiStatusError)) return undefined;
  const cause = error.summary.causes.find(({ reason }) => reason === "DisruptionBudget");
  if (!cause) return undefined;
  const status = budgetStatusOf(cause.message, pod.namespace);
  const budget = `PodDisruptionBudget${status.name ? ` ${status.name}` : ""}`;
  if (retryAfterMs)
    return {
      kind: "retry",
      message: `429: ${budget} is not observed by the disruption controller yet: ${cause.message}`,
      retryAfterMs,
      maybeSent: false,
    };
  return {
    kind: "failed",
    message: `429: ${budget} allows no disruption now: ${cause.message}`,
    isBudget: true,
    budget: status,
  };
}

// The API server's message: "The disruption budget web needs 2 healthy pods and has 2 currently".
function budgetStatusOf(message: string, namespace: string): BudgetStatus {
  const name = /disruption budget (\S+)/i.exec(message)?.[1];
  const counts = /needs (\d{1,9}) healthy pods and has (\d{1,9}) currently/.exec(message);
  return {
    name: name ? `${namespace}/${name}` : null,
    desiredHealthy: counts ? Number(counts[1]) : null,
    currentHealthy: counts ? Number(counts[2]) : null,
  };
}

function tooManyBudgets(error: unknown): KillEnd | undefined {
  if (!(error instanceof ApiStatusError) || !/more than one PodDisruptionBudget/i.test(error.message))
    return undefined;
  return {
    kind: "failed",
    message: `${error.message} A pod with several PodDisruptionBudgets can only be deleted.`,
    isBudget: true,
  };
}

// The message of a request denied by an authorizer, RBAC or other:
// staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
const authorizerRefusal = /User "(?:[^"\\]|\\.)*" cannot \S+ (?:resource|path) /;
// The message of a request denied by an admission webhook: .../admission/plugin/webhook/errors/statuserror.go
const webhookRefusal = /admission webhook "[^"]*" denied the request/;

/**
 * Returns whether a 403 is about this object: an admission webhook, policy or plugin denied it, and may admit another.
 * A denial by the authorizer or by a proxy would be the same for every object.
 */
function isAboutObject(error: unknown): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  return webhookRefusal.test(error.message) || !authorizerRefusal.test(error.message);
}

function forbidden(error: unknown, message: string, { verb, resource }: CallRights): KillEnd {
  // The API server returns 403 if a PodDisruptionBudget has negative disruptionsAllowed.
  if (error instanceof ApiStatusError && /^poddisruptionbudgets?$/i.test(error.summary.kind))
    return { kind: "failed", message, isBudget: true };
  if (isAboutObject(error)) return { kind: "failed", message };
  return {
    kind: "failed",
    message: `${message}; grant the agent the right to ${verb} ${resource}`,
    isForbidden: true,
  };
}
