import { open } from "node:fs/promises";
import { NodekeeperError, quote, stampOf } from "@nodekeeper/core/lib";
import { parse } from "yaml";

/** The kubelet's topology manager policies, with katalyst's name for each. */
const policyWords: Readonly<Record<string, string>> = {
  "best-effort": "BestEffort",
  restricted: "Restricted",
  "single-numa-node": "SingleNUMANode",
};

const scopeWords: Readonly<Record<string, string>> = { container: "ContainerLevel", pod: "PodLevel" };

/** The kubelet's topology manager settings. */
export interface TopologyManager {
  /** "none", "best-effort", "restricted" or "single-numa-node". */
  policy: string;
  /** "container" or "pod". */
  scope: string;
}

/**
 * Returns the policy in the format of the CustomNodeResource, for example "None" or "RestrictedPodLevel". Throws
 * `invalid` for unknown values.
 */
export function topologyPolicy({ policy, scope }: TopologyManager): string {
  if (policy === "none") return "None";
  const [policyWord, scopeWord] = [own(policyWords, policy), own(scopeWords, scope)];
  if (policyWord === undefined) {
    throw new NodekeeperError("invalid", `${quote(policy)} is not a topology manager policy`);
  }
  if (scopeWord === undefined) {
    throw new NodekeeperError("invalid", `${quote(scope)} is not a topology manager scope`);
  }
  return `${policyWord}${scopeWord}`;
}

/**
 * Returns the topology manager settings of a KubeletConfiguration (YAML or JSON), with the kubelet's defaults for
 * missing fields. Throws `invalid` for other documents:
 * https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
 */
export function topologyManagerOf(text: string): TopologyManager {
  const parsed = parsedYaml(text);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new NodekeeperError("invalid", "not a map of settings");
  }
  const { kind, topologyManagerPolicy, topologyManagerScope } = parsed as Record<string, unknown>;
  if (kind !== "KubeletConfiguration") {
    throw new NodekeeperError("invalid", `kind is ${quote(String(kind))}, not KubeletConfiguration`);
  }
  return {
    policy: word(topologyManagerPolicy, "topologyManagerPolicy", "none"),
    scope: word(topologyManagerScope, "topologyManagerScope", "container"),
  };
}

/** The kubelet's configuration file. It is read only if it has changed. */
export class KubeletConfigFile {
  readonly #path: string;
  #known: { readonly stamp: string; readonly topologyManager: TopologyManager } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Returns the settings of the topology manager. Throws `notFound`, `exhausted`, `unavailable` or `invalid`, naming
   * the file.
   */
  async topologyManager(): Promise<TopologyManager> {
    // Read before the file, so that the next call detects a change in between.
    const stamp = await stampOf(this.#path).catch((error) => unreadable(this.#path, error));
    if (this.#known?.stamp === stamp) return this.#known.topologyManager;
    const text = await readBounded(this.#path);
    try {
      const topologyManager = topologyManagerOf(text);
      this.#known = { stamp, topologyManager };
      return topologyManager;
    } catch (error) {
      throw new NodekeeperError("invalid", `kubelet configuration ${this.#path}`, { cause: error });
    }
  }
}

function own(words: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(words, name) ? words[name] : undefined;
}

function word(value: unknown, name: string, otherwise: string): string {
  // The kubelet treats an empty string as unset.
  if (value === undefined || value === null || value === "") return otherwise;
  if (typeof value !== "string") throw new NodekeeperError("invalid", `${name} is not a string`);
  return value;
}

function parsedYaml(text: string): unknown {
  try {
    return parse(text, { maxAliasCount: 100, logLevel: "error" });
  } catch (error) {
    throw new NodekeeperError("invalid", "not valid YAML", { cause: error });
  }
}

const MAX_FILE_BYTES = 1024 * 1024;

async function readBounded(path: string): Promise<string> {
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      // Reads one byte beyond the limit, to detect a larger file.
      const length = Math.min(size, MAX_FILE_BYTES) + 1;
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
      if (bytesRead <= MAX_FILE_BYTES) return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    unreadable(path, error);
  }
  throw new NodekeeperError("exhausted", `kubelet configuration ${path} is larger than 1 MiB`);
}

function unreadable(path: string, error: unknown): never {
  const code = (error as NodeJS.ErrnoException).code === "ENOENT" ? "notFound" : "unavailable";
  throw new NodekeeperError(code, `failed to read kubelet configuration ${path}`, { cause: error });
}
