import { AnswerNotOfKubernetes } from "@nodekeeper/api/errors";
import { NodekeeperError } from "../lib/index.ts";
import type { ApiResource, KubeObject } from "./types.ts";

/** Returns whether a parsed value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a parsed value if it is a JSON object, and an empty one otherwise. */
export function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** Returns the JSON objects of a parsed value if it is a list, and none otherwise. */
export function recordsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Returns a parsed value if it is a string, and an empty string otherwise. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Returns a parsed response as an API object. Throws `unavailable` if it is not one. Adds empty metadata if it is
 * missing.
 */
export function asObject(what: string, value: unknown): KubeObject {
  if (!isRecord(value))
    throw new AnswerNotOfKubernetes({ request: what, problem: "the response is not an object" });
  value.metadata ??= {};
  if (!isRecord(value.metadata))
    throw new NodekeeperError("unavailable", `${what}: metadata is not an object`);
  return value as KubeObject;
}

/** Returns "v1" or "apps/v1". */
export function apiVersionOf(resource: { group: string; version: string }): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

/** Returns the object with apiVersion and kind set. Servers omit them for items of a list. */
export function typed(resource: ApiResource, object: KubeObject): KubeObject {
  if (object.apiVersion && object.kind) return object;
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}
