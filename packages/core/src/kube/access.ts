/** A secret or certificate: inline, or in a file that is read again when it changes. */
export type Material = { readonly text: string } | { readonly file: string };

/** The address of the API server and the agent's credentials. Created by `loadClusterAccess`, used by `createKubeClient`. */
export interface ClusterAccess {
  /** For messages: the kubeconfig file and context, or "in-cluster". */
  readonly source: string;
  readonly server: URL;
  /** The name the server's certificate must have, where it differs from the host of `server`. */
  readonly serverName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** PEM. The system's certificate authorities where absent. */
  readonly certificateAuthority?: Material;
  /** PEM, always together with `clientKey`. */
  readonly clientCertificate?: Material;
  readonly clientKey?: Material;
  /** Bearer token. */
  readonly token?: Material;
}
