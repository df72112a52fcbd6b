/** A secret or certificate: inline, or in a file that is read again when it changes. */
export type Material = { readonly text: string } | { readonly file: string };

/**
 * Address of the API server and credentials of the agent. `loadClusterAccess` creates it; `createKubeClient` uses it.
 */
export interface ClusterAccess {
  /** Source for messages: the kubeconfig file and context, or "in-cluster". */
  readonly source: string;
  readonly server: URL;
  /** Name to verify in the server's certificate. Default: the host of `server`. */
  readonly serverName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** PEM. Default: the system's certificate authorities. */
  readonly certificateAuthority?: Material;
  /** PEM. Requires `clientKey`. */
  readonly clientCertificate?: Material;
  readonly clientKey?: Material;
  /** Bearer token. */
  readonly token?: Material;
}
