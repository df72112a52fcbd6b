import { at, isTree } from "../json.ts";
import type { AccessAttributes } from "../options.ts";
import { badRequest, methodNotAllowed } from "../status.ts";
import type { Call } from "./call.ts";

/** Responds to a SelfSubjectAccessReview according to the rules. Without rules, everything is allowed. */
export function reviewAccess(
  call: Call,
  rules: ((attributes: AccessAttributes) => boolean) | undefined,
): void {
  if (call.method !== "POST") throw methodNotAllowed();
  const attributes =
    at(call.body, "spec", "resourceAttributes") ?? at(call.body, "spec", "nonResourceAttributes");
  if (!isTree(attributes))
    throw badRequest("spec.resourceAttributes or spec.nonResourceAttributes is required");
  const allowed = rules?.(attributes as AccessAttributes) ?? true;
  call.json(201, {
    kind: "SelfSubjectAccessReview",
    apiVersion: "authorization.k8s.io/v1",
    metadata: { creationTimestamp: null },
    spec: at(call.body, "spec"),
    status: { allowed, ...(allowed ? {} : { reason: "denied by the rules of the development API server" }) },
  });
}
