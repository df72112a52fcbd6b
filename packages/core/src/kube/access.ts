/** A secret or certificate: given in place, or in a file that is read again when it changes. */
export type Material = { readonly text: string } | { readonly file: string };

/** Where the API server is and who we are to it. Made by `loadClusterAccess`, used by `createKubeClient`. */
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
