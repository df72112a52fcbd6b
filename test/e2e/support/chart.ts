import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { ApiObject } from "./admin-client.ts";
import { pathOf } from "./parts.ts";

const execute = promisify(execFile);

/** deploy/helm/nodekeeper */
export const chart = join(import.meta.dirname, "../../../deploy/helm/nodekeeper");

/** The value that turns on the status server for other hosts. */
export const remote = "statusServer.remote.enabled=true";

/**
 * Returns the output of `helm template` with these values: "eviction.enabled=false", "tolerations=[]". If it fails,
 * throws an error that contains Helm's message.
 */
export async function renderText(...values: readonly string[]): Promise<string> {
  const sets = values.flatMap((value) => [/=[[{]./.test(value) ? "--set-json" : "--set", value]);
  const args = ["template", "nodekeeper", chart, "--namespace", "nodekeeper", ...sets];
  const { stdout } = await execute(pathOf("helm"), args, { maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/** The same as objects. */
export async function render(...values: readonly string[]): Promise<ApiObject[]> {
  const documents = parseAllDocuments(await renderText(...values));
  return documents.map((document) => document.toJS()).filter((each) => each !== null);
}

export function named(
  objects: readonly ApiObject[],
  kind: string,
  name = "nodekeeper",
): ApiObject | undefined {
  return objects.find((each) => each.kind === kind && each.metadata.name === name);
}

export function ofKind(objects: readonly ApiObject[], kind: string): ApiObject[] {
  return objects.filter((each) => each.kind === kind);
}
