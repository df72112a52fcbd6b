import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Authority, makeAuthority } from "../../packages/core/src/kube/testing/certificates.ts";
import type { RunningAgent } from "./agent.ts";
import type { TestCluster } from "./cluster.ts";

/**
 * Has the embedded API server, which knows no accounts, answer TokenReviews and SubjectAccessReviews.
 * @param accounts by token; read for each review
 * @param mayGet whether an account may get a nonResourceURL
 */
export function reviewTokens(
  cluster: TestCluster,
  accounts: Readonly<Record<string, string>>,
  mayGet: (user: string, path: string) => boolean,
): void {
  cluster.admit = ({ path, body }) => {
    // biome-ignore lint/suspicious/noExplicitAny: reviews of two kinds
    const { spec } = (body ?? {}) as any;
    if (path.endsWith("/tokenreviews")) {
      const username = accounts[spec.token];
      return { status: 201, body: { status: username ? { authenticated: true, user: { username } } : {} } };
    }
    if (!path.endsWith("/subjectaccessreviews")) return undefined;
    const { verb, path: asked } = spec.nonResourceAttributes;
    return { status: 201, body: { status: { allowed: verb === "get" && mayGet(spec.user, asked) } } };
  };
}

/** A certificate for 127.0.0.1, its authority, and the agent's flags for it. */
export function issueCertificate(directory: string): {
  authority: Authority;
  flags: { serverTlsCertFile: string; serverTlsPrivateKeyFile: string };
} {
  const authority = makeAuthority(directory, "ca");
  const flags = {
    serverTlsCertFile: join(directory, "tls.crt"),
    serverTlsPrivateKeyFile: join(directory, "tls.key"),
  };
  const { cert, key } = authority.issue("worker-1", "IP:127.0.0.1");
  writeFileSync(flags.serverTlsPrivateKeyFile, key);
  writeFileSync(flags.serverTlsCertFile, cert);
  return { authority, flags };
}

/** The port of an agent's `server.remoteAddress`. */
export function remotePort({ logLines }: RunningAgent): number {
  const listening = logLines.find(({ msg, tls }) => msg === "status server is listening" && tls);
  return Number(listening.address.split(":")[1]);
}
