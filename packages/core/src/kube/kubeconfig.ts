import { readFile } from "node:fs/promises";
import { delimiter, dirname, resolve } from "node:path";
import { parse, YAMLParseError } from "yaml";
import { isLoopback, NodekeeperError } from "../lib/index.ts";
import type { ClusterAccess, Material } from "./access.ts";

type Fields = Readonly<Record<string, unknown>>;

/** One mapping of the file, and where it is, for messages. */
interface Section {
  file: string;
  path: string;
  fields: Fields;
}

// What kubectl supports and we don't: refused, because leaving them out would act as another user or reach another server.
const REFUSED_USER_FIELDS = ["exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups"];
const SUPPORTED_USERS = "a token, a tokenFile, or a client-certificate and client-key";

/**
 * Reads one kubeconfig file. Relative paths in it are relative to its folder.
 * Throws `invalid` naming the file, the field and what was expected.
 * @param context name of the context; the file's current-context where absent
 */
export async function readKubeconfig(path: string, context?: string): Promise<ClusterAccess> {
  if (path.includes(delimiter)) {
    throw new NodekeeperError("invalid", `KUBECONFIG ${path}: expected one file, not a list of files`, {
      id: "NK1202",
    });
  }
  const root: Section = { file: path, path: "", fields: await readFields(path) };
  const contextName = context ?? text(root, "current-context");
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
  if (!isFields(fields))
    throw new NodekeeperError("invalid", `kubeconfig ${path}: expected a mapping`, { id: "NK1202" });
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
  // As in client-go, the file wins: it is the one that gets renewed.
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

/** `<field>-data` (base64) wins over `<field>` (a path), as in client-go. */
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

/** Finds `name` in one of the file's named lists and gives its `key` mapping. */
function entry(root: Section, list: string, name: string, key: string): Section {
  const entries = root.fields[list];
  if (!Array.isArray(entries)) throw wrong(root, list, "a list");
  const index = entries.findIndex((candidate) => isFields(candidate) && candidate.name === name);
  if (index < 0) {
    const names = entries.filter(isFields).map((candidate) => String(candidate.name));
    throw wrong(
      root,
      list,
      `an entry named ${JSON.stringify(name)}; there are: ${names.join(", ") || "none"}`,
    );
  }
  const fields = entries[index][key] ?? {};
  const path = `${list}[${index}].${key}`;
  if (!isFields(fields)) throw wrong(root, path, "a mapping");
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

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// The parser's own message quotes the line, which may hold a token.
function unreadable(path: string, error: unknown): NodekeeperError {
  if (!(error instanceof YAMLParseError))
    return new NodekeeperError("invalid", `kubeconfig ${path} can't be read`, { id: "NK1202", cause: error });
  const line = error.linePos?.[0].line;
  return new NodekeeperError(
    "invalid",
    `kubeconfig ${path}${line ? `:${line}` : ""}: not YAML (${error.code})`,
    { id: "NK1202" },
  );
}

// The value is left out of the message on purpose: it may be a secret.
function wrong(section: Section, field: string, expected: string): NodekeeperError {
  const path = section.path ? `${section.path}.${field}` : field;
  return new NodekeeperError("invalid", `kubeconfig ${section.file}: ${path}: expected ${expected}`, {
    id: "NK1202",
  });
}
