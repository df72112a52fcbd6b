import type { CatalogueEntries } from "./entry.ts";

/** NK12xx: access to the API server. */
export const kubeErrors: CatalogueEntries = {
  NK1201: {
    title: "No access to an API server is configured",
    cause:
      "No kubeconfig was given, `KUBECONFIG` is not set, and the process is not a pod with a service account.",
    remedy:
      "In a DaemonSet, keep `automountServiceAccountToken` on. Elsewhere set `kube.kubeconfig` (`--kubeconfig`).",
  },
  NK1202: {
    title: "The kubeconfig can't be used",
    cause:
      "The file is missing, is not YAML, or lacks the context, cluster or user that it refers to. Exec plugins are not run.",
    remedy:
      "Correct the field in the message; `kube.context` chooses another context. Use a token file or client certificate in place of an exec plugin.",
  },
  NK1203: {
    title: "Credentials can't be read",
    cause:
      "A token, certificate or key file is missing, empty or not readable for the agent's user, or certificate and key do not belong together.",
    remedy:
      "Check the files that the message names. They are read again when they change; the agent needs no restart.",
  },
  NK1204: {
    title: "The API server can't be reached",
    cause:
      "No connection: the address is wrong, a firewall or network policy blocks it, or the API server is down. The agent works on with what it knows and tries again.",
    remedy:
      "Run `nodekeeper preflight` on the node. Check `KUBERNETES_SERVICE_HOST`, or the server of the kubeconfig, and the route to it.",
  },
  NK1205: {
    title: "The API server's certificate is not trusted",
    cause:
      "The certificate is not signed by the certificate authority of the kubeconfig or service account, has expired, or is for another name.",
    remedy:
      "Compare the server's certificate with the authority that the message names. After a rotation of the authority, wait for the new `ca.crt` to be mounted.",
  },
  NK1206: {
    title: "The API server does not accept the agent's credentials (401)",
    cause:
      "The token has expired or its service account was recreated; or the client certificate has expired.",
    remedy:
      "Projected tokens are renewed by the kubelet and read again by the agent: if 401 stays, recreate the pod, or renew the kubeconfig's credentials.",
  },
  NK1207: {
    title: "The API server refuses a request for want of a right (403)",
    cause:
      "The agent's ClusterRole lacks the verb and resource in the message; or an admission plugin, such as NodeRestriction, refused the request.",
    remedy:
      "Compare the role with `deploy/rbac.yaml` and `deploy/rbac-optional.yaml`; `nodekeeper preflight` lists every right that is missing.",
  },
  NK1208: {
    title: "The API server does not serve this kind",
    cause:
      "The CustomResourceDefinition is not installed, or the API group or version is switched off on this server.",
    remedy:
      "Install the definitions of `deploy/crds/`, or katalyst's. For ResourceSlices, see NK1501. The agent finds the kind within seconds of its installation.",
  },
  NK1209: {
    title: "Requests to the API server are throttled",
    cause:
      "The API server answered 429 (API priority and fairness), or the agent's own limit `kube.qps` and `kube.burst` is used up.",
    remedy:
      "It passes by itself. If it stays, look for the flow schema of the agent's account, or raise `kube.qps` where the message speaks of the agent's own limit.",
  },
  NK1210: {
    title: "The API server refuses an object as invalid (422)",
    cause:
      "A field that a plugin or driver reported breaks a rule of the kind's schema, or an admission webhook refused it.",
    remedy:
      "The message names the field. Correct the plugin that reports it; `/api/v1/objects` and `nodekeeper plugins list` name it.",
  },
  NK1211: {
    title: "The object is too large for the API server",
    cause: "The limit of etcd is about 1.5 MiB for an object; plugins together reported more.",
    remedy: "Let the plugin that the log names report less. Its last good content stays published.",
  },
  NK1212: {
    title: "The Node object does not exist",
    cause:
      "The kubelet has not registered the node yet, the Node was deleted, or `nodeName` is not the name of this node.",
    remedy:
      "Set `nodeName` (`NODE_NAME` from `spec.nodeName` in a DaemonSet). The agent continues as soon as the Node is there.",
  },
  NK1213: {
    title: "The answer is not from a Kubernetes API server",
    cause:
      "A proxy or load balancer on the way answered with a page of its own, or the address belongs to another service.",
    remedy:
      "The message shows the beginning of the answer. Check the server's address and proxies between the node and the API server.",
  },
  NK1214: {
    title: "Another client changed the object (409)",
    cause: "Two clients write the object at the same time, or another field manager owns a field of it.",
    remedy:
      "Nothing, if it passes: the agent reads the object again and writes it. If it stays, find the other client: `kubectl get -o yaml --show-managed-fields` names it.",
  },
};
