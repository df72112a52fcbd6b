import { readFile } from "node:fs/promises";
import { delimiter, dirname, resolve } from "node:path";
import { KubeconfigUnusable } from "@nodekeeper/api/errors";
import { parse, YAMLParseError } from "yaml";
import { isLoopback, type NodekeeperError } from "../lib/index.ts";
import type { ClusterAccess, Material } from "./access.ts";
import { isRecord } from "./objects.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A mapping of the file, with its path for messages. */
interface Section {
  file: string;
  path: string;
  fields: Fields;
}

// Fields that kubectl supports and this client does not. Ignoring them would act as another user or reach another
// server.
const REFUSED_USER_FIELDS = ["exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups"];
const SUPPORTED_USERS = "a token, a tokenFile, or a client-certificate and client-key";

/**
 * Reads one kubeconfig file. Relative paths are resolved against the file's directory. Throws `invalid`, naming the
 * file, the field and the expected value.
 * @param context name of the context; default: the file's current-context
 */
export async function readKubeconfig(path: string, context?: string): Promise<ClusterAccess> {
  if (path.includes(delimiter)) {
    throw new KubeconfigUnusable({ file: path, problem: "expected one file, not a list of files" });
  }
  const root: Section = { file: path, path: "", fields: await readFields(path) };
  const contextName = context || text(root, "current-context");
  if (!contextName) throw wrong(root, "current-context", "the name of a context");
  const chosen = entry(root, "contexts", contextName, "context");
  const cluster = entry(root, "clusters", required(chosen, "cluster"), "cluster");
  const userName = text(chosen, "user");
  const access = readCluster(cluster, `${path} (context ${contextName})`);
  if (!userName) return access;
  const user = entry(root, "users", userName, "user");
  const complete = { ...access, ...readUser(user) };
  refuseSecretsInTheClear(complete, user);
  return complete;
}

async function readFields(path: string): Promise<Fields> {
  let fields: unknown;
  try {
    fields = parse(await readFile(path, "utf8"));
  } catch (error) {
    throw unreadable(path, error);
  }
  if (!isRecord(fields)) throw new KubeconfigUnusable({ file: path, problem: "expected a mapping" });
  return fields;
}

function readCluster(cluster: Section, source: string): ClusterAccess {
  if (cluster.fields["proxy-url"] !== undefined)
    throw wrong(cluster, "proxy-url", "no proxy; it is not supported");
  const address = required(cluster, "server");
  const server = URL.canParse(address) ? new URL(address) : undefined;
  if (!server || !/^https?:$/.test(server.protocol)) {
    throw wrong(cluster, "server", "a URL that starts with https:// or http://");
  }
  if (server.username !== "" || server.password !== "")
    throw wrong(
      cluster,
      "server",
      "a URL without user name and password; the credentials belong to the user",
    );
  const serverName = text(cluster, "tls-server-name");
  const certificateAuthority = material(cluster, "certificate-authority");
  const insecure = cluster.fields["insecure-skip-tls-verify"] ?? false;
  if (typeof insecure !== "boolean") throw wrong(cluster, "insecure-skip-tls-verify", "true or false");
  if (insecure && certificateAuthority) {
    throw wrong(cluster, "insecure-skip-tls-verify", "false or absent beside a certificate-authority");
  }
  return {
    source,
    server,
    ...(serverName ? { serverName } : {}),
    ...(insecure ? { insecureSkipTlsVerify: true } : {}),
    ...(certificateAuthority ? { certificateAuthority } : {}),
  };
}

function readUser(user: Section): Pick<ClusterAccess, "token" | "clientCertificate" | "clientKey"> {
  for (const field of REFUSED_USER_FIELDS) {
    if (user.fields[field] === undefined) continue;
    throw wrong(user, field, `${SUPPORTED_USERS}; ${field} is not supported`);
  }
  const clientCertificate = material(user, "client-certificate");
  const clientKey = material(user, "client-key");
  if (!clientCertificate !== !clientKey) {
    throw wrong(
      user,
      clientKey ? "client-certificate" : "client-key",
      "both client-certificate and client-key",
    );
  }
  // As in client-go, tokenFile takes precedence, because it is the one that is renewed.
  const tokenFile = text(user, "tokenFile");
  const literal = text(user, "token");
  const token = tokenFile ? { file: beside(user.file, tokenFile) } : literal ? { text: literal } : undefined;
  return {
    ...(token ? { token } : {}),
    ...(clientCertificate && clientKey ? { clientCertificate, clientKey } : {}),
  };
}

function refuseSecretsInTheClear(access: ClusterAccess, user: Section): void {
  if (access.server.protocol === "https:" || !access.token || isLoopback(access.server.hostname)) return;
  throw wrong(
    user,
    "token",
    `a server with https:// (a token would be readable on the way to ${access.server.host})`,
  );
}

/** As in client-go, `<field>-data` (base64) takes precedence over `<field>` (a path). */
function material(section: Section, field: string): Material | undefined {
  const data = text(section, `${field}-data`);
  if (data) {
    const decoded = Buffer.from(data, "base64").toString("utf8");
    if (!decoded.includes("-----BEGIN")) throw wrong(section, `${field}-data`, "PEM in base64");
    return { text: decoded };
  }
  const file = text(section, field);
  return file ? { file: beside(section.file, file) } : undefined;
}

function beside(kubeconfig: string, path: string): string {
  return resolve(dirname(kubeconfig), path);
}

/** Finds the entry named `name` in a list of the file and returns its `key` mapping. */
function entry(root: Section, list: string, name: string, key: string): Section {
  const entries = root.fields[list];
  if (!Array.isArray(entries)) throw wrong(root, list, "a list");
  const index = entries.findIndex((candidate) => isRecord(candidate) && candidate.name === name);
  if (index < 0) {
    const names = entries.filter(isRecord).map((candidate) => String(candidate.name));
    throw wrong(
      root,
      list,
      `an entry named ${JSON.stringify(name)}; there are: ${names.join(", ") || "none"}`,
    );
  }
  const fields = entries[index][key] ?? {};
  const path = `${list}[${index}].${key}`;
  if (!isRecord(fields)) throw wrong(root, path, "a mapping");
  return { file: root.file, path, fields };
}

function text(section: Section, field: string): string | undefined {
  const value = section.fields[field] ?? undefined;
  if (value === undefined || typeof value === "string") return value || undefined;
  throw wrong(section, field, "a text");
}

function required(section: Section, field: string): string {
  const value = text(section, field);
  if (value) return value;
  throw wrong(section, field, "a text that is not empty");
}

// Omits the parser's message, which quotes the line and may contain a token.
function unreadable(path: string, error: unknown): NodekeeperError {
  if (!(error instanceof YAMLParseError))
    return new KubeconfigUnusable({ file: path, problem: "can't be read" }, { cause: error });
  const line = error.linePos?.[0].line;
  return new KubeconfigUnusable({
    file: `${path}${line ? `:${line}` : ""}`,
    problem: `not YAML (${error.code})`,
  });
}

// Omits the value, which may be a secret.
function wrong(section: Section, field: string, expected: string): NodekeeperError {
  const path = section.path ? `${section.path}.${field}` : field;
  return new KubeconfigUnusable({ file: section.file, problem: `${path}: expected ${expected}` });
}
