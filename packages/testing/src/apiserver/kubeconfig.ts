import { stringify } from "yaml";

/** Returns a kubeconfig for one server, with its token if there is one. */
export function kubeconfigFor(url: string, token: string | undefined): string {
  const name = "nodekeeper-dev";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: url } }],
    users: [{ name, user: token === undefined ? {} : { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}
