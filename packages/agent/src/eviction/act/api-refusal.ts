import { ApiStatusError } from "@nodekeeper/core/kube";
import { codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { PodReference } from "../decide/pods.ts";
import type { BudgetStatus } from "../decide/state.ts";
import type { KillEnd } from "./killer.ts";

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
      return (
        budgetResult(error, pod, retryAfterMs) ?? {
          kind: "retry",
          message,
          retryAfterMs,
          maybeSent: false,
          isThrottled: true,
        }
      );
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
  const status = budgetStatusOf(cause.message, pod.namespace);
  const budget = status.name ? `the disruption budget ${status.name}` : "a disruption budget";
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
    budget: status,
  };
}

// As the API server words it: "The disruption budget web needs 2 healthy pods and has 2 currently".
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
    message: `${error.message}; a pod with two budgets can only be deleted`,
    isBudget: true,
  };
}

// An authorizer's words, as kube-apiserver writes them for RBAC and for any other:
// staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
const authorizerRefusal = /User "(?:[^"\\]|\\.)*" cannot \S+ (?:resource|path) /;
// An admission webhook's, whatever text of its own follows: .../admission/plugin/webhook/errors/statuserror.go
const webhookRefusal = /admission webhook "[^"]*" denied the request/;

/**
 * Whether a 403 is about this object: an admission webhook, policy or plugin refused it, and may admit the next one.
 * What the authorizer refuses, and what a proxy answers, would be the same for every object.
 */
function isAboutObject(error: unknown): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  return webhookRefusal.test(error.message) || !authorizerRefusal.test(error.message);
}

function forbidden(error: unknown, message: string, { verb, resource }: CallRights): KillEnd {
  // A budget that allows less than nothing is answered by 403 too.
  if (error instanceof ApiStatusError && /^poddisruptionbudgets?$/i.test(error.summary.kind))
    return { kind: "failed", message, isBudget: true };
  if (isAboutObject(error)) return { kind: "failed", message };
  return {
    kind: "failed",
    message: `${message}; the agent needs the right to ${verb} ${resource}`,
    isForbidden: true,
  };
}
