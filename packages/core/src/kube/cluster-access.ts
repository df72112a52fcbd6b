import { access as checkAccess } from "node:fs/promises";
import { join } from "node:path";
import { ApiServerNotConfigured, CredentialsUnusable } from "@nodekeeper/api/errors";
import type { ClusterAccess } from "./access.ts";
import { readKubeconfig } from "./kubeconfig.ts";

export interface ClusterAccessOptions {
  /** Path of a kubeconfig file. Overrides the environment unless it is empty. */
  kubeconfig?: string;
  /** Name of the context. Default or empty: the file's current-context. */
  context?: string;
  /** Environment of the process. KUBECONFIG, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are used. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Mount path of the pod's service account. */
  serviceAccountDirectory?: string;
}

// Source: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/#directly-accessing-the-rest-api
const SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Determines how to access the API server: by the given kubeconfig, else by KUBECONFIG, else by the service account of
 * the agent's pod. Throws `invalid`, naming the file, the field and the expected value, or the sources that were tried.
 */
export async function loadClusterAccess(options: ClusterAccessOptions): Promise<ClusterAccess> {
  const { kubeconfig, context, environment } = options;
  const path = kubeconfig || environment.KUBECONFIG;
  if (path) return readKubeconfig(path, context);
  const inCluster = await inClusterAccess(
    environment,
    options.serviceAccountDirectory ?? SERVICE_ACCOUNT_DIRECTORY,
  );
  if (inCluster) return inCluster;
  throw new ApiServerNotConfigured({
    problem:
      "no access to the API server: no kubeconfig was given, KUBECONFIG is not set, and this is not a pod with a service account",
  });
}

async function inClusterAccess(
  environment: ClusterAccessOptions["environment"],
  directory: string,
): Promise<ClusterAccess | undefined> {
  const host = environment.KUBERNETES_SERVICE_HOST;
  const port = environment.KUBERNETES_SERVICE_PORT;
  if (!host || !port) return undefined;
  const tokenFile = join(directory, "token");
  try {
    await checkAccess(tokenFile);
  } catch (error) {
    const message = `KUBERNETES_SERVICE_HOST is set, but the service account token ${tokenFile} can't be read`;
    throw new CredentialsUnusable({ problem: message }, { cause: error });
  }
  return {
    source: "in-cluster",
    server: serviceUrl(host, port),
    certificateAuthority: { file: join(directory, "ca.crt") },
    token: { file: tokenFile },
  };
}

function serviceUrl(host: string, port: string): URL {
  const url = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (URL.canParse(url)) return new URL(url);
  throw new ApiServerNotConfigured({
    problem: `KUBERNETES_SERVICE_HOST ${JSON.stringify(host)} and KUBERNETES_SERVICE_PORT ${JSON.stringify(port)} are not a host and a port`,
  });
}
