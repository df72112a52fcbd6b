import type { CatalogueEntries } from "./entry.ts";

/** NK17xx: the agent's own servers, and commands that ask them. */
export const serverErrors: CatalogueEntries = {
  NK1701: {
    title: "Another process listens on the status server's address",
    cause: "Two agents on one node, or another service on the port; with `hostNetwork` ports are the node's.",
    remedy:
      "Find it with `ss -ltnp`, and stop it or choose another `server.address` or `server.remoteAddress`.",
  },
  NK1702: {
    title: "The agent may not listen on the status server's address",
    cause: "Ports below 1024 need CAP_NET_BIND_SERVICE.",
    remedy: "Choose a port from 1024 on in `server.address`.",
  },
  NK1703: {
    title: "The status server's address is not one of this machine",
    cause: "`server.address` names an address that no interface has, or a name that can't be resolved.",
    remedy:
      "Use `127.0.0.1:10290`; for other machines `server.remoteAddress: 0.0.0.0:10291` with a certificate.",
  },
  NK1704: {
    title: "The status server can't listen beyond loopback without TLS",
    cause:
      "`server.address` can be reached from other machines, and there is no certificate or no way to authorize requests.",
    remedy:
      "Set `server.tlsCertFile` and `server.tlsPrivateKeyFile`, and give the agent the role `nodekeeper-reviews`; or stay on loopback and use `kubectl port-forward`.",
  },
  NK1705: {
    title: "The status server's certificate can't be used",
    cause: "The certificate or key file is missing, not PEM, or they do not belong together.",
    remedy:
      "Check `server.tlsCertFile` and `server.tlsPrivateKeyFile`. A running server keeps the last good pair and reads the files again when they change.",
  },
  NK1706: {
    title: "Another process serves the socket",
    cause: "A second agent runs on the node; during a rollout the old pod has not exited yet.",
    remedy: "Wait for the old agent to exit, or set another `api.socket`. It is tried again.",
  },
  NK1707: {
    title: "A file that is no socket is in the way",
    cause: "Something else lies at the path of the socket. The agent never deletes it.",
    remedy: "Move the file away, or set another path.",
  },
  NK1708: {
    title: "A request to the status server has no valid token (401)",
    cause:
      "Beyond loopback every request needs a bearer token that the API server knows, or the cookie of a browser that is signed in with one.",
    remedy:
      "Send a service account's token, for example with `kubectl create token`. In a browser, open the page at `/` and sign in again: the token has expired, or the server's private key was replaced.",
  },
  NK1709: {
    title: "The account may not get this path of the status server (403)",
    cause: "The SubjectAccessReview for the account and path was denied.",
    remedy:
      "Bind `nodekeeper-metrics-reader` or `nodekeeper-status-reader` of `deploy/rbac-optional.yaml` to the account.",
  },
  NK1710: {
    title: "No agent answers",
    cause:
      "The agent does not run, is still starting, or has another `server.address`; a client of the gRPC API has another `api.socket`, or may not open it (mode 0660).",
    remedy:
      "On the node name the address with `--server`; from outside of it use `kubectl nodekeeper`. If its pod is not ready, look at the pod's log.",
  },
  NK1711: {
    title: "The local API can't be served",
    cause:
      "The folder of `api.socket` can't be made or written, the path is longer than 107 bytes, or another process removed the socket.",
    remedy:
      "Correct the folder's owner and mode, or set another `api.socket`. It is tried again every 5 s; until then programs that use it get no answer.",
  },
  NK1712: {
    title: "A part of the agent did not stop in time",
    cause:
      "It waits for a call that does not end, such as one on a network file system. The agent exits without it.",
    remedy: "Nothing, if it is rare. Otherwise report it, with the log since the stop.",
  },
  NK1713: {
    title: "A watch of the local API is refused",
    cause: "More watches are open than the agent serves: a client opens them and does not end them.",
    remedy: "Find the client: `ss -xp` lists the processes connected to `api.socket`. Restart it.",
  },
  NK1714: {
    title: "The kubectl command can't be run",
    cause:
      "`kubectl nodekeeper` reaches agents through kubectl, and finds none in PATH or at the path in the variable KUBECTL.",
    remedy: "Install kubectl, or set KUBECTL to its path.",
  },
  NK1715: {
    title: "The kubectl command failed",
    cause:
      "The API server can't be reached, the credentials of the kubeconfig are not accepted, or the account lacks a right: to list pods and to create `pods/portforward` in the agents' namespace.",
    remedy:
      "The message is kubectl's; try the same with kubectl, as `kubectl get pods --namespace nodekeeper`. The rights are in docs/kubectl-plugin.md.",
  },
  NK1716: {
    title: "No agent is found",
    cause: "No pod with the agents' labels is in the namespace that was asked, or none is on the node.",
    remedy:
      "Name the namespace with `--agent-namespace` or NODEKEEPER_NAMESPACE, and the labels with `--agent-selector`; check the DaemonSet's node selector and tolerations.",
  },
};
