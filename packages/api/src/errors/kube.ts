import { declareError, declareProblem } from "./declare.ts";

// NK12xx: access to the API server.

export const ApiServerNotConfigured = declareError({
  id: "NK1201",
  code: "invalid",
  title: "No access to an API server is configured",
  cause:
    "No kubeconfig was given, `KUBECONFIG` is not set, and the process is not a pod with a service account.",
  remedy:
    "In a DaemonSet, keep `automountServiceAccountToken` enabled. Elsewhere set `kube.kubeconfig` (`--kubeconfig`).",
});

export const KubeconfigUnusable = declareError({
  id: "NK1202",
  code: "invalid",
  message: "kubeconfig {file}: {problem}",
  title: "The kubeconfig can't be used",
  cause:
    "The file is missing, is not YAML, or lacks the context, cluster or user that it refers to. Exec plugins are not run.",
  remedy:
    "Correct the field in the message; `kube.context` chooses another context. Use a token file or client certificate instead of an exec plugin.",
});

export const CredentialsUnusable = declareError({
  id: "NK1203",
  code: "invalid",
  title: "Credentials can't be read",
  cause:
    "A token, certificate or key file is missing, empty or not readable for the agent's user, or the certificate does not match the key.",
  remedy:
    "Check the files that the message names. They are read again when they change; the agent needs no restart.",
});

export const ApiServerUnreachable = declareError({
  id: "NK1204",
  code: "unavailable",
  title: "The API server can't be reached",
  cause:
    "No connection: the address is wrong, a firewall or network policy blocks it, or the API server is down. The agent continues with its last known state and retries.",
  remedy:
    "Run `nodekeeper preflight` on the node. Check `KUBERNETES_SERVICE_HOST`, or the server of the kubeconfig, and the route to it.",
});

export const ApiServerNotTrusted = declareError({
  id: "NK1205",
  code: "unavailable",
  title: "The API server's certificate is not trusted",
  cause:
    "The certificate is not signed by the certificate authority of the kubeconfig or service account, has expired, or is for another name.",
  remedy:
    "Compare the server's certificate with the authority that the message names. After a rotation of the authority, wait for the new `ca.crt` to be mounted.",
});

export const CredentialsNotAccepted = declareProblem({
  id: "NK1206",
  title: "The API server does not accept the agent's credentials (401)",
  cause: "The token has expired or its service account was recreated; or the client certificate has expired.",
  remedy:
    "Projected tokens are renewed by the kubelet and read again by the agent: if 401 stays, recreate the pod, or renew the kubeconfig's credentials.",
});

export const RequestForbidden = declareProblem({
  id: "NK1207",
  title: "The API server refuses a request: a permission is missing (403)",
  cause:
    "The agent's ClusterRole lacks the verb and resource in the message; or an admission plugin, such as NodeRestriction, refused the request.",
  remedy:
    "Compare the role with `deploy/rbac.yaml` and `deploy/rbac-optional.yaml`; `nodekeeper preflight` lists every missing permission.",
});

export const KindNotServed = declareError({
  id: "NK1208",
  code: "unsupported",
  message: "the API server does not serve {object} (is its CustomResourceDefinition installed?)",
  title: "The API server does not serve this kind",
  cause:
    "The CustomResourceDefinition is not installed or was removed, or the API group or version is disabled on this server.",
  remedy:
    "Install the definitions of `deploy/crds/`, or katalyst's. For ResourceSlices, see NK1501. The agent finds the kind within seconds of its installation.",
});

export const RequestsThrottled = declareError({
  id: "NK1209",
  code: "exhausted",
  message: "{request}: {problem}",
  title: "Requests to the API server are throttled",
  cause:
    "The API server answered 429 (API priority and fairness), or the agent's own limit `kube.qps` and `kube.burst` is used up.",
  remedy:
    "None if it passes. If it persists, check the flow schema of the agent's account, or raise `kube.qps` if the message names the agent's own limit.",
});

export const ObjectInvalid = declareProblem({
  id: "NK1210",
  title: "The API server refuses an object as invalid (422)",
  cause:
    "A field that a plugin or driver reported breaks a rule of the kind's schema, or an admission webhook refused it.",
  remedy:
    "The message names the field. Correct the plugin that reports it; `/api/v1/objects` and `nodekeeper plugins list` name it.",
});

export const ObjectTooLarge = declareError({
  id: "NK1211",
  code: "exhausted",
  message: "the answer is longer than {limit} bytes",
  title: "The object is too large for the API server",
  cause: "The limit of etcd is about 1.5 MiB per object; the plugins together reported more.",
  remedy: "Reduce what the plugin in the log reports. Its last good content stays published.",
});

export const NodeMissing = declareError({
  id: "NK1212",
  code: "unavailable",
  message: "Node {node} does not exist (yet)",
  title: "The Node object does not exist",
  cause:
    "The kubelet has not registered the node yet, the Node was deleted, or `nodeName` is not the name of this node.",
  remedy:
    "Set `nodeName` (`NODE_NAME` from `spec.nodeName` in a DaemonSet). The agent continues as soon as the Node exists.",
});

export const AnswerNotOfKubernetes = declareError({
  id: "NK1213",
  code: "unavailable",
  message: "{request}: {problem}",
  title: "The response is not from a Kubernetes API server",
  cause:
    "A proxy or load balancer in between responded with its own page, or the address belongs to another service.",
  remedy:
    "The message shows the beginning of the response. Check the server's address and the proxies between the node and the API server.",
});

export const ObjectChanged = declareProblem({
  id: "NK1214",
  title: "Another client changed the object (409)",
  cause: "Two clients write the object at the same time, or another field manager owns a field of it.",
  remedy:
    "None if it passes: the agent reads the object again and writes it. If it persists, `kubectl get -o yaml --show-managed-fields` names the other client.",
});

export const WatchOverflow = declareError({
  id: "NK1215",
  code: "exhausted",
  message: "{problem}; the watch is ended, and the objects are listed again",
  title: "The API server sends more than the agent accepts",
  cause:
    "A watch sent more than 16 MiB at once or 4 MiB a second, or added objects of more than 32 MiB. The agent ended the watch; it lists the objects again after a delay.",
  remedy:
    "Find the client that keeps changing the pods, slices or the Node of this node, and check proxies between the node and the API server.",
});
