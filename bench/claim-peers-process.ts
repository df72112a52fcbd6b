// The API server and the driver of the claims benchmark, in a process of their own:
//   node claim-peers-process.ts PLUGIN_DIRECTORY KUBECONFIG COUNT
// Prints the allocated claims as JSON when the server is ready. Both answer at once, with as little work as can be.
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { CLAIMS_DRIVER, serveClaimsDriver } from "./claims-driver.ts";
import { BENCH_NODE } from "./device-messages.ts";

const [pluginDirectory = "", kubeconfig = "", count = "0"] = process.argv.slice(2);
const names = Array.from({ length: Number(count) }, (_, number) => `accelerator-${number}`);

// By path: an object that is not looked up takes as little of a claim's time as can be.
const answers = new Map<string, { status: number; body: unknown }>();
const server = createDevApiServer({
  clock: systemClock,
  log: silentLogger,
  faults: ({ method, path }) => (method === "GET" ? answers.get(path) : undefined),
});
await server.start();
server.seedNode(BENCH_NODE);
await server.writeKubeconfig(kubeconfig);
const claims = names.map((device, number) => {
  const name = `claim-${number}`;
  // As on a node: the kubelet calls for a pod that exists, and that the agent watches.
  const pod = { name: `pod-${number}`, uid: `00000000-0000-0000-0000-${number}` };
  server.store.put({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...pod, namespace: "default" },
    spec: {
      nodeName: BENCH_NODE,
      serviceAccountName: "default",
      containers: [{ name: "main", image: "example.com/main" }],
    },
    status: { phase: "Pending" },
  });
  const opaque = { driver: CLAIMS_DRIVER, parameters: { mode: "timeSliced" } };
  const stored = server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: { devices: { requests: [{ name: "req", exactly: { deviceClassName: CLAIMS_DRIVER, count: 1 } }] } },
    status: {
      allocation: {
        devices: {
          results: [{ request: "req", driver: CLAIMS_DRIVER, pool: BENCH_NODE, device }],
          config: [{ source: "FromClaim", requests: ["req"], opaque }],
        },
      },
      reservedFor: [{ resource: "pods", ...pod }],
    },
  });
  answers.set(`/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/${name}`, {
    status: 200,
    body: stored,
  });
  return { namespace: "default", name, uid: stored.metadata.uid };
});
serveClaimsDriver(pluginDirectory, CLAIMS_DRIVER, names);
process.stdout.write(`${JSON.stringify(claims)}\n`);
