import { declareError, declareProblem } from "./declare.ts";

// NK17xx: the agent's own servers, and commands that ask them.

export const StatusAddressInUse = declareError({
  id: "NK1701",
  code: "conflict",
  message: "status server: another process listens on {address}",
  title: "The status server's address is in use",
  cause: "Two agents on one node, or another service on the port; with `hostNetwork` ports are the node's.",
  remedy:
    "Find the process with `ss -ltnp`; stop it or choose another `server.address` or `server.remoteAddress`.",
});

export const StatusAddressForbidden = declareError({
  id: "NK1702",
  code: "forbidden",
  message: "status server: not allowed to listen on {address}",
  title: "The agent may not listen on the status server's address",
  cause: "Ports below 1024 need CAP_NET_BIND_SERVICE.",
  remedy: "Choose a port of 1024 or above in `server.address`.",
});

export const StatusAddressInvalid = declareError({
  id: "NK1703",
  code: "invalid",
  title: "The status server's address does not belong to this machine",
  cause: "`server.address` names an address that no interface has, or a name that can't be resolved.",
  remedy:
    "Use `127.0.0.1:10290`; for other machines `server.remoteAddress: 0.0.0.0:10291` with a certificate.",
});

export const StatusServerWithoutTls = declareError({
  id: "NK1704",
  code: "invalid",
  message:
    "server.address {address} is reachable from other machines: requires a certificate and authorization of requests",
  title: "The status server can't listen beyond loopback without TLS",
  cause:
    "`server.address` is reachable from other machines, but no certificate or no authorization of requests is configured.",
  remedy:
    "Set `server.tlsCertFile` and `server.tlsPrivateKeyFile`, and give the agent the role `nodekeeper-reviews`; or listen on loopback and use `kubectl port-forward`.",
});

export const ServingCertificateUnusable = declareError({
  id: "NK1705",
  code: "invalid",
  message: "{what}: {problem}",
  title: "The status server's certificate can't be used",
  cause: "The certificate or key file is missing or not PEM, or the certificate does not match the key.",
  remedy:
    "Check `server.tlsCertFile` and `server.tlsPrivateKeyFile`. A running server keeps the last good pair and reads the files again when they change.",
});

export const SocketInUse = declareError({
  id: "NK1706",
  code: "conflict",
  message: "another process {problem}",
  title: "Another process serves the socket",
  cause: "A second agent runs on the node; during a rollout the old pod has not exited yet.",
  remedy: "Wait for the old agent to exit, or set another `api.socket`. The agent retries.",
});

export const SocketPathTaken = declareError({
  id: "NK1707",
  code: "conflict",
  message: "{path} exists and is no socket; it is left alone",
  title: "The socket's path is in use by another file",
  cause: "The file at the path is not a socket. The agent never deletes it.",
  remedy: "Move the file away, or set another path.",
});

export const TokenRefused = declareError({
  id: "NK1708",
  code: "unauthenticated",
  title: "A request to the status server has no valid token (401)",
  cause:
    "Beyond loopback every request needs a bearer token that the API server knows, or the cookie of a browser session that was signed in with one.",
  remedy:
    "Send a service account's token, for example with `kubectl create token`. In a browser, open the page at `/` and sign in again: the token has expired, or the server's private key was replaced.",
});

export const PathForbidden = declareError({
  id: "NK1709",
  code: "forbidden",
  message: "{account} may not {verb} {path}{because}",
  title: "The account may not read this path of the status server (403)",
  cause: "The SubjectAccessReview for the account and path was denied.",
  remedy:
    "Bind `nodekeeper-metrics-reader` or `nodekeeper-status-reader` of `deploy/rbac-optional.yaml` to the account.",
});

export const AgentUnreachable = declareError({
  id: "NK1710",
  code: "unavailable",
  title: "No agent responds",
  cause:
    "The agent is not running, is still starting, or has another `server.address`; or a client of the gRPC API uses another `api.socket` or may not open it (mode 0660).",
  remedy:
    "On the node, set the address with `--server`; elsewhere, use `kubectl nodekeeper`. If the agent's pod is not ready, check its log.",
});

export const LocalApiNotServed = declareProblem({
  id: "NK1711",
  title: "The local API can't be served",
  cause:
    "The directory of `api.socket` can't be created or written, the path is longer than 107 bytes, or another process removed the socket.",
  remedy:
    "Correct the directory's owner and mode, or set another `api.socket`. The agent retries every 5 s; until then, its clients get no response.",
});

export const PartNotStopped = declareProblem({
  id: "NK1712",
  title: "A part of the agent did not stop in time",
  cause:
    "The part waits for a call that does not end, for example on a network file system. The agent exits without waiting for it.",
  remedy: "None if it is rare. Otherwise, report it with the log since the stop.",
});

export const TooManyWatches = declareError({
  id: "NK1713",
  code: "exhausted",
  title: "A watch of the local API is refused",
  cause: "Too many watches are open: a client opens them without closing them.",
  remedy: "Find the client: `ss -xp` lists the processes connected to `api.socket`. Restart it.",
});

export const KubectlMissing = declareError({
  id: "NK1714",
  code: "notFound",
  title: "The kubectl command can't be run",
  cause:
    "`kubectl nodekeeper` reaches agents through kubectl, which is neither in PATH nor at the path in the variable KUBECTL.",
  remedy: "Install kubectl, or set KUBECTL to its path.",
});

export const KubectlFailed = declareError({
  id: "NK1715",
  code: "unavailable",
  message: "kubectl {command}: {problem}",
  title: "The kubectl command failed",
  cause:
    "The API server can't be reached, the credentials of the kubeconfig are not accepted, or the account lacks a permission: to list pods and to create `pods/portforward` in the agents' namespace.",
  remedy:
    "The message is from kubectl; try kubectl itself, for example `kubectl get pods --namespace nodekeeper`. docs/kubectl-plugin.md lists the permissions.",
});

export const AgentNotFound = declareError({
  id: "NK1716",
  code: "notFound",
  title: "No agent is found",
  cause: "The namespace has no pod with the agents' labels, or none on the node.",
  remedy:
    "Set the namespace with `--agent-namespace` or NODEKEEPER_NAMESPACE, and the labels with `--agent-selector`; check the DaemonSet's node selector and tolerations.",
});

export const AgentStillRuns = declareError({
  id: "NK1717",
  code: "conflict",
  message: "node {node}: an agent still runs there: {agent}",
  title: "An agent runs on a node that is to be cleaned",
  cause:
    "`nodekeeper uninstall` found a pod with the agents' labels on the node after a minute, or an agent that uses the state directory of this machine. It would restore what is removed, so the node is left as it is.",
  remedy:
    "Stop the agent: uninstall the release, delete the DaemonSet, or stop the systemd unit. If the pod cannot end because the node is down, delete it with `--force`. Then run the command again.",
});
