import { errorIdOf, messageWithId } from "@nodekeeper/core/lib";
import { printMessage } from "./output.ts";

/** Prints an error to standard error. One with an id is followed by its cause and remedy of the catalogue. */
export async function printError(error: unknown): Promise<void> {
  const id = errorIdOf(error);
  printMessage(messageWithId(error));
  if (id === undefined) return;
  const { findEntry } = await import("./error-catalogue/index.ts");
  const entry = findEntry(id);
  if (entry) process.stderr.write(`  Cause: ${entry.cause}\n  Remedy: ${entry.remedy}\n`);
}
