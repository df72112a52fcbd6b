import { codeOf, messageOf, systemClock } from "@nodekeeper/core/lib";
import type { ArchivedNodes } from "../../archive/archive.ts";
import type { Cluster } from "../cluster.ts";
import type { Kubectl } from "../kubectl.ts";
import { listNodes } from "./list-nodes.ts";
import { readNodeObject } from "./node-details.ts";
import type { PageSource } from "./page-source.ts";
import { searchPods } from "./search-pods.ts";

export interface ClusterSourceOptions extends Pick<PageSource, "explainPod" | "explainNode"> {
  cluster: Cluster;
  kubectl: Kubectl;
  /** Lists the nodes of the archive. Undefined if there is no archive. */
  archivedNodes(): Promise<ArchivedNodes | undefined>;
  /** The user's namespace. */
  namespace(): Promise<string>;
}

const ARCHIVE_INTERVAL_MS = 300_000;
const ARCHIVE_WAIT_MS = 5_000;
const NOT_LISTED = "which nodes of the archive are gone is not known without the permission to list nodes";

/** Reads a cluster through kubectl. */
export function clusterSource(options: ClusterSourceOptions): PageSource {
  const { cluster, kubectl, namespace, explainPod, explainNode } = options;
  const archive = new ArchiveList(options.archivedNodes);
  return {
    async nodes() {
      const archived = await archive.nodes();
      const [agents, objects] = await Promise.all([
        cluster.agentNodes().catch((error) => noneIf(archived.nodes.length > 0, error)),
        listNodes(kubectl),
      ]);
      const known = new Map(objects?.map((each) => [each.node, each]));
      const names = new Set([...known.keys(), ...agents]);
      const nodes = [...names].map((node) => ({ node, ...known.get(node), hasAgent: agents.has(node) }));
      // Only if Nodes could be listed: otherwise, an archived node without an agent may still exist.
      const gone = (objects ? archived.nodes : [])
        .filter(({ node }) => !names.has(node))
        .map(({ node, oldest, newest }) => ({ node, hasAgent: false, archived: { oldest, newest } }));
      const isUnknown = objects === undefined && archived.nodes.length > 0;
      const problem = [...archived.problems, ...(isUnknown ? [NOT_LISTED] : [])].join("; ");
      return { nodes: [...nodes, ...gone], ...(problem === "" ? {} : { archiveProblem: problem }) };
    },
    connect: (node) => cluster.connect(node),
    forward: (node) => cluster.forward(node),
    pods: (text, signal) => searchPods(kubectl, text, namespace, signal),
    explainPod,
    explainNode,
    nodeObject: (node) => readNodeObject(kubectl, node),
  };
}

// A cluster that has no agents now may still have archived nodes.
function noneIf(isEnough: boolean, error: unknown): Set<string> {
  if (isEnough && codeOf(error) === "notFound") return new Set();
  throw error;
}

/**
 * The nodes of the archive. Read at most every five minutes, because the store scans all of its records; a failed
 * reading is repeated by the next call. Callers wait at most 5 s for a slow store.
 */
class ArchiveList {
  readonly #read: ClusterSourceOptions["archivedNodes"];
  #known: ArchivedNodes = { nodes: [], problems: [] };
  #dueAt = 0;
  #reading: Promise<void> | undefined;

  constructor(read: ClusterSourceOptions["archivedNodes"]) {
    this.#read = read;
  }

  /** Returns the last list of nodes. If a later reading failed, `problems` contains its error. */
  async nodes(): Promise<ArchivedNodes> {
    if (systemClock.monotonic() >= this.#dueAt) this.#reading ??= this.#renew();
    if (this.#reading) await Promise.race([this.#reading, systemClock.sleep(ARCHIVE_WAIT_MS)]);
    return this.#known;
  }

  async #renew(): Promise<void> {
    try {
      this.#known = (await this.#read()) ?? this.#known;
      this.#dueAt = systemClock.monotonic() + ARCHIVE_INTERVAL_MS;
    } catch (error) {
      this.#known = { ...this.#known, problems: [messageOf(error)] };
    }
    this.#reading = undefined;
  }
}
