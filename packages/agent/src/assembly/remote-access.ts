import type { KubeApiClient } from "@nodekeeper/core/kube";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { AgentConfiguration } from "../config/index.ts";
import { delegatedAccess, type RemoteAccess, ServingCertificate } from "../server/index.ts";

/** How the status server serves other machines; undefined where no certificate is configured. */
export function remoteAccessOf(
  { server: { tlsCertFile, tlsPrivateKeyFile } }: AgentConfiguration,
  client: KubeApiClient,
  clock: Clock,
  log: Logger,
): RemoteAccess | undefined {
  if (tlsCertFile === "") return undefined;
  return {
    certificate: new ServingCertificate({
      certFile: tlsCertFile,
      privateKeyFile: tlsPrivateKeyFile,
      clock,
      log: log.child({ logger: "server" }),
    }),
    check: delegatedAccess({ client, clock }),
  };
}
