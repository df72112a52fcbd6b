import { AnswerNotOfKubernetes } from "@nodekeeper/api/errors";
import type { Connection } from "./connection.ts";
import { isRecord, recordOf, textOf } from "./objects.ts";
import { redactSecrets } from "./redact.ts";
import type {
  AccessAnswer,
  AccessQuestion,
  CallOptions,
  PathQuestion,
  TokenAnswer,
  TokenUser,
} from "./types.ts";

const tokenReview = { group: "authentication.k8s.io", kind: "TokenReview" };
const accessReview = { group: "authorization.k8s.io", kind: "SubjectAccessReview" };
const ownAccessReview = { group: "authorization.k8s.io", kind: "SelfSubjectAccessReview" };

/**
 * Determines the user of a token:
 * https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
 */
export async function reviewToken(
  connection: Connection,
  token: string,
  options?: CallOptions,
): Promise<TokenAnswer> {
  const status = await review(connection, tokenReview, { token }, options);
  const reason = redactSecrets(textOf(status.error), token);
  const user = recordOf(status.user);
  const username = textOf(user.username);
  if (status.authenticated !== true || username === "") return { user: undefined, reason };
  const groups = Array.isArray(user.groups) ? user.groups.map(textOf) : [];
  const extra = isRecord(user.extra) ? (user.extra as TokenUser["extra"]) : {};
  return { user: { username, uid: textOf(user.uid), groups, extra }, reason };
}

/** Checks the agent's own permissions. */
export async function reviewAccess(
  connection: Connection,
  question: AccessQuestion,
  options?: CallOptions,
): Promise<AccessAnswer> {
  const spec = { resourceAttributes: question };
  return answerOf(await review(connection, ownAccessReview, spec, options));
}

/** Checks the permissions of another user. */
export async function reviewAccessOf(
  connection: Connection,
  { username, uid, groups, extra }: TokenUser,
  question: AccessQuestion | PathQuestion,
  options?: CallOptions,
): Promise<AccessAnswer> {
  const attributes = "path" in question ? "nonResourceAttributes" : "resourceAttributes";
  const spec = { [attributes]: question, user: username, uid, groups, extra };
  const status = await review(connection, accessReview, spec, options);
  return answerOf(status);
}

function answerOf(status: Readonly<Record<string, unknown>>): AccessAnswer {
  return {
    allowed: status.allowed === true,
    reason: textOf(status.reason) || textOf(status.evaluationError),
  };
}

async function review(
  connection: Connection,
  { group, kind }: { group: string; kind: string },
  spec: Record<string, unknown>,
  options: CallOptions | undefined,
): Promise<Record<string, unknown>> {
  const resource = `${kind.toLowerCase()}s`;
  const path = `/apis/${group}/v1/${resource}`;
  const body = { apiVersion: `${group}/v1`, kind, spec };
  const secret = textOf(spec.token);
  const request = { method: "POST", path, body, verb: "create", resource, secret };
  const { value } = await connection.call(request, options);
  if (isRecord(value) && isRecord(value.status)) return value.status;
  throw new AnswerNotOfKubernetes({ request: `POST ${path}`, problem: "the response has no status" });
}
