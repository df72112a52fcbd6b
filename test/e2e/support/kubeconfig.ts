import { writeFileSync } from "node:fs";

export interface KubeconfigOptions {
  port: number;
  /** File of the certificate authority. */
  authority: string;
  /** Fields of the user as a kubeconfig has them. */
  user: Readonly<Record<string, unknown>>;
}

/** Writes a kubeconfig with one context to `path`, as JSON, which is valid YAML. Returns `path`. */
export function writeKubeconfig(path: string, { port, authority, user }: KubeconfigOptions): string {
  const cluster = { server: `https://127.0.0.1:${port}`, "certificate-authority": authority };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "e2e",
    contexts: [{ name: "e2e", context: { cluster: "e2e", user: "e2e" } }],
    clusters: [{ name: "e2e", cluster }],
    users: [{ name: "e2e", user }],
  };
  writeFileSync(path, JSON.stringify(kubeconfig), { mode: 0o600 });
  return path;
}
