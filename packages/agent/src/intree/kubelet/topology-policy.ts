import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
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

const defaults: TopologyManager = { policy: "none", scope: "container" };

/**
 * Returns the topology manager settings of a KubeletConfiguration (YAML or JSON). Throws `invalid` for other documents:
 * https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
 * @param base the settings of missing fields
 */
export function topologyManagerOf(text: string, base = defaults): TopologyManager {
  const parsed = parsedYaml(text);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new NodekeeperError("invalid", "not a map of settings");
  }
  const { kind, topologyManagerPolicy, topologyManagerScope } = parsed as Record<string, unknown>;
  if (kind !== "KubeletConfiguration") {
    throw new NodekeeperError("invalid", `kind is ${quote(String(kind))}, not KubeletConfiguration`);
  }
  return {
    policy: word(topologyManagerPolicy, "topologyManagerPolicy", base.policy, defaults.policy),
    scope: word(topologyManagerScope, "topologyManagerScope", base.scope, defaults.scope),
  };
}

/** The kubelet's configuration file and its drop-in files. They are read only if one of them has changed. */
export class KubeletConfig {
  readonly #path: string;
  #known: { readonly stamps: string; readonly topologyManager: TopologyManager } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Returns the settings of the topology manager. Throws `notFound`, `exhausted`, `unavailable` or `invalid`, naming
   * the file.
   * @param dropIns directory of files that override the configuration file, if any
   */
  async topologyManager(dropIns?: string): Promise<TopologyManager> {
    const paths = [this.#path, ...(dropIns === undefined ? [] : await dropInFiles(dropIns))];
    // Read before the files, so that the next call detects a change in between.
    const stamps = JSON.stringify(
      await Promise.all(
        paths.map(async (path) => [path, await stampOf(path).catch((error) => unreadable(path, error))]),
      ),
    );
    if (this.#known?.stamps === stamps) return this.#known.topologyManager;
    let topologyManager = defaults;
    for (const path of paths) {
      const text = await readBounded(path);
      try {
        topologyManager = topologyManagerOf(text, topologyManager);
      } catch (error) {
        throw new NodekeeperError("invalid", `kubelet configuration ${path}`, { cause: error });
      }
    }
    this.#known = { stamps, topologyManager };
    return topologyManager;
  }
}

const MAX_DROP_INS = 100;

// The kubelet merges the *.conf files of the directory and its subdirectories in lexical order (kubernetes
// cmd/kubelet/app/server.go, mergeKubeletConfigurations).
async function dropInFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch((error) =>
    unreadable(directory, error),
  );
  const files = entries.filter((entry) => !entry.isDirectory() && entry.name.endsWith(".conf"));
  if (files.length > MAX_DROP_INS) {
    const message = `kubelet configuration ${directory} has ${files.length} files, more than ${MAX_DROP_INS}`;
    throw new NodekeeperError("exhausted", message);
  }
  // A directory sorts by its own name, before the rest of the path.
  const key = (path: string) => path.replaceAll("/", "\0");
  return files
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function own(words: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(words, name) ? words[name] : undefined;
}

function word(value: unknown, name: string, base: string, otherwise: string): string {
  if (value === undefined) return base;
  // The kubelet treats an empty string as unset.
  if (value === null || value === "") return otherwise;
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
