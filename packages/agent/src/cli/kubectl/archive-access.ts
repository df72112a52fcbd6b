import { ArchiveNotReadable } from "@nodekeeper/api/errors";
import { codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { Archive } from "../archive/archive.ts";
import type { Options } from "../commands/context.ts";

/** Returns the archive that the options select; undefined if they select none. Throws `invalid`. */
export async function archiveOf({
  archive,
  archiveCa: caFile = "",
  archiveHeaders: headersFile = "",
  archiveAttributes = "",
}: Options): Promise<Archive | undefined> {
  if (archive === undefined) return undefined;
  // Imported on demand: other commands do not need it.
  const { Archive } = await import("../archive/archive.ts");
  const { StoredRows } = await import("../archive/stored-rows.ts");
  const { VictoriaLogs } = await import("../archive/victoria-logs.ts");
  const stores = listOf(archive).map((url) => new VictoriaLogs({ url, caFile, headersFile }));
  if (stores.length === 0)
    throw new ArchiveNotReadable({ url: archive, problem: "no URL" }, { code: "invalid" });
  return new Archive(new StoredRows(stores, attributesOf(listOf(archiveAttributes))));
}

/**
 * Returns what agents answer, or else the archive. Throws the agents' error if the archive has no answer either.
 * @param fromArchive gets why no agent answered, in sentences
 */
export async function orArchived<T>(
  fromAgents: () => Promise<T>,
  fromArchive: (reasons: string[]) => Promise<T>,
): Promise<T> {
  let refusal: unknown;
  try {
    return await fromAgents();
  } catch (error) {
    if (codeOf(error) === "invalid") throw error;
    refusal = error;
  }
  // That no agent has a record is expected of a node that is gone.
  const reasons = codeOf(refusal) === "notFound" ? [] : [`No agent answered: ${messageOf(refusal)}.`];
  try {
    return await fromArchive(reasons);
  } catch (error) {
    if (!(refusal instanceof NodekeeperError)) throw error;
    const message = `${messageOf(refusal)}; ${messageOf(error)}`;
    throw new NodekeeperError(refusal.code, message, { id: refusal.id, cause: error });
  }
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function attributesOf(parts: readonly string[]): Record<string, string> {
  const entries = parts.map((part) => {
    const [name = "", value] = part.split(/=(.*)/s, 2);
    if (name !== "" && value !== undefined) return [name, value] as const;
    throw new NodekeeperError(
      "invalid",
      `--archive-attributes: expected NAME=VALUE; got ${JSON.stringify(part)}`,
    );
  });
  return Object.fromEntries(entries);
}
