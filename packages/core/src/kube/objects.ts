import { NodekeeperError } from "../lib/index.ts";
import type { ApiResource, KubeObject } from "./types.ts";

/** Whether a parsed value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Checks that a parsed answer is an API object; throws `unavailable` when it is not. A missing metadata becomes empty. */
export function asObject(what: string, value: unknown): KubeObject {
  if (!isRecord(value))
    throw new NodekeeperError("unavailable", `${what}: the answer is not an object`, { id: "NK1213" });
  value.metadata ??= {};
  if (!isRecord(value.metadata))
    throw new NodekeeperError("unavailable", `${what}: metadata is not an object`);
  return value as KubeObject;
}

/** "v1" or "apps/v1". */
export function apiVersionOf(resource: { group: string; version: string }): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

/** The object, with the apiVersion and kind of its resource where it has none. */
export function typed(resource: ApiResource, object: KubeObject): KubeObject {
  if (object.apiVersion && object.kind) return object;
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}
