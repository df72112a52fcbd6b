import { parseOwner } from "@nodekeeper/api/archive";
import { ArchiveNotReadable } from "@nodekeeper/api/errors";
import type { PodExplanation } from "@nodekeeper/api/records";
import { codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { Sourced } from "../answer-source.ts";
import { type Archive, notesOf } from "../archive/archive.ts";
import type { PodQuery } from "../archive/find-pods.ts";
import type { Options } from "../commands/context.ts";
import { sinceOf } from "../eviction/record-source.ts";
import { type PodName, parsePodName } from "../pod-name.ts";
import type { Cluster } from "./cluster.ts";

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

/** Returns which pod is meant: "deployment/web", "[NAMESPACE/]NAME" or a UID. Throws `invalid`. */
export function podQueryOf(text: string, { node, at }: Options, namespace: string): PodQuery {
  const owner = parseOwner(text);
  const pod = owner ? { namespace, owner } : parsePodName(text, namespace);
  return { pod, node, at: at === undefined ? undefined : timeIn(at) };
}

function timeIn(text: string): number {
  const at = /^\d{4}-/.test(text) ? Date.parse(text) : sinceOf(text, Date.now(), "--at");
  if (Number.isFinite(at)) return at;
  throw new NodekeeperError(
    "invalid",
    `--at must be a time such as 2026-03-01T03:00:00Z; got ${JSON.stringify(text)}`,
  );
}

/**
 * Explains a pod from its node's agent, else from the archive. A controller's pods, and the pod of a name at
 * a time, are only in the archive. Throws `notFound`, and `invalid` if an archive is needed but missing.
 */
export async function explainPodOf(
  query: PodQuery,
  cluster: Cluster,
  archive: Archive | undefined,
): Promise<Sourced<PodExplanation>> {
  const { pod, node, at } = query;
  if (!("owner" in pod) && at === undefined) {
    const explain = () => cluster.explainPod(pod, node);
    if (!archive) return await explain();
    const explainNewest = async () => withHint(pod, await explain());
    return await orArchived(explainNewest, async (reasons) =>
      archive.explainPod(await archive.find(query), reasons),
    );
  }
  if (!archive) {
    const what = "owner" in pod ? "a pod of a controller" : "--at";
    const hint = "owner" in pod ? "; for a pod in the namespace of that name, use -n" : "";
    throw new NodekeeperError("invalid", `${what} needs --archive${hint}`);
  }
  const meant = await archive.find(query);
  const explain = async () => {
    const { answer, source } = await cluster.explainPod({ uid: meant.pod.uid }, meant.pod.node);
    const notes = notesOf(meant, answer.history?.seenAt);
    return { answer, source: source && { ...source, notes: [...source.notes, ...notes] } };
  };
  return await orArchived(explain, (reasons) => archive.explainPod(meant, reasons));
}

const EARLIER_HINT = "For an earlier pod of this name, use --at TIME.";

// A pod that exists may have replaced the one that is asked about.
function withHint(pod: PodName, { answer, source }: Sourced<PodExplanation>): Sourced<PodExplanation> {
  const hasLeft = answer.history !== null && answer.history.leftAt !== null;
  if ("uid" in pod || hasLeft || source === undefined) return { answer, source };
  return { answer, source: { ...source, notes: [...source.notes, EARLIER_HINT] } };
}

/**
 * Returns the agents' answer; if they have none, the archive's answer. If both fail, throws an error with the code of
 * the agents' error and both messages. An `invalid` error of either is thrown unchanged.
 * @param fromArchive called with the reasons why no agent answered, in sentences; empty if no agent has a record
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
    if (codeOf(error) === "invalid" || !(refusal instanceof NodekeeperError)) throw error;
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
