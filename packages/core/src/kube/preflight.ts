import { NodekeeperError } from "../lib/index.ts";
import type { Connection } from "./connection.ts";
import { isRecord } from "./objects.ts";
import type { AccessAnswer, AccessQuestion, CallOptions, ServerVersion } from "./types.ts";

const REVIEWS_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** The version that the server reports. */
export async function readServerVersion(
  connection: Connection,
  options?: CallOptions,
): Promise<ServerVersion> {
  const value = await read(connection, "/version", options);
  const { gitVersion, major, minor, platform } = value;
  return { gitVersion: text(gitVersion), major: text(major), minor: text(minor), platform: text(platform) };
}

/** Every group and version served, the core group first. */
export async function readGroupVersions(connection: Connection, options?: CallOptions): Promise<string[]> {
  const [core, named] = await Promise.all([
    read(connection, "/api", options),
    read(connection, "/apis", options),
  ]);
  const groups = records(named.groups).flatMap((group) => records(group.versions));
  return [...list(core.versions).map(text), ...groups.map((version) => text(version.groupVersion))].filter(
    Boolean,
  );
}

/** Asks whether the agent may do something. */
export async function reviewAccess(
  connection: Connection,
  question: AccessQuestion,
  options?: CallOptions,
): Promise<AccessAnswer> {
  const request = {
    method: "POST",
    path: REVIEWS_PATH,
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: question },
    },
    verb: "create",
    resource: "selfsubjectaccessreviews",
  };
  const { value } = await connection.call(request, options);
  const status = isRecord(value) && isRecord(value.status) ? value.status : undefined;
  if (!status)
    throw new NodekeeperError("unavailable", `POST ${REVIEWS_PATH}: the answer has no status`, {
      id: "NK1213",
    });
  return { allowed: status.allowed === true, reason: text(status.reason) || text(status.evaluationError) };
}

async function read(connection: Connection, path: string, options: CallOptions | undefined) {
  const { value } = await connection.call(
    { method: "GET", path, verb: "get", resource: "discovery" },
    options,
  );
  if (isRecord(value)) return value;
  throw new NodekeeperError("unavailable", `GET ${path}: the answer is not an object`, { id: "NK1213" });
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function records(value: unknown): Record<string, unknown>[] {
  return list(value).filter(isRecord);
}
