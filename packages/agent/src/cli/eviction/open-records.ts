import { statSync } from "node:fs";
import { linesOfFile, type RecordSource } from "./record-source.ts";
import { ofFile, ofStateDirectory } from "./stored-records.ts";

/**
 * Opens the records of a state directory, its database, or a file written by `rounds --records`; the caller disposes of
 * them. Throws `notFound`, `invalid` or `corrupt` for a path without records.
 */
export async function openStoredRecords(path: string): Promise<RecordSource> {
  const isDatabase = path.endsWith(".db") || isDirectory(path);
  return isDatabase ? await ofStateDirectory(path) : await ofFile(linesOfFile(path));
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
