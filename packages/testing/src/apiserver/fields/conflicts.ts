import type { ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { StatusError } from "../status.ts";
import { type FieldSet, listPaths } from "./field-set.ts";

/** Fields of another manager that an apply would change. */
export interface ManagerConflict {
  entry: ManagedFieldsEntry;
  fields: FieldSet;
}

/** Returns the 409 of server-side apply, with one FieldManagerConflict cause per field, as clients expect. */
export function conflictError(conflicts: ManagerConflict[]): StatusError {
  const found = conflicts.flatMap(({ entry, fields }) =>
    listPaths(fields).map((path) => ({ manager: describe(entry), path })),
  );
  const causes = found.map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${manager}`,
    field: path,
  }));
  const [first] = found;
  const message =
    found.length === 1 && first
      ? `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.path}`
      : `Apply failed with ${found.length} conflicts: ${grouped(found)}`;
  return new StatusError(409, "Conflict", message, { causes });
}

function grouped(found: { manager: string; path: string }[]): string {
  const managers = [...new Set(found.map(({ manager }) => manager))].sort();
  const lines = managers.flatMap((manager) => [
    `conflicts with ${manager}:`,
    ...found.filter((conflict) => conflict.manager === manager).map(({ path }) => `- ${path}`),
  ]);
  return lines.join("\n");
}

function describe(entry: ManagedFieldsEntry): string {
  const name = JSON.stringify(entry.manager ?? "");
  const manager = entry.subresource ? `${name} with subresource ${JSON.stringify(entry.subresource)}` : name;
  if (entry.operation !== "Update") return manager;
  return `${manager} using ${entry.apiVersion ?? ""}${entry.time ? ` at ${entry.time}` : ""}`;
}
