import type { ReadPageFile } from "../../../server/index.ts";
import { pageFiles } from "../../page-files.ts";

/** Reads the files of the page of all nodes: compiled into the plugin's bundle, or those of `pageFiles`. */
export function fleetFiles(): ReadPageFile {
  if (typeof NODEKEEPER_FLEET_PAGE !== "object") return pageFiles();
  const files = NODEKEEPER_FLEET_PAGE;
  return async (name) => (Object.hasOwn(files, name) ? Buffer.from(files[name]!) : undefined);
}

declare const NODEKEEPER_FLEET_PAGE: Readonly<Record<string, string>> | undefined;
