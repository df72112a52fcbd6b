// The API server and the driver of the claims benchmark, in a process of their own:
//   node claim-peers-process.ts PLUGIN_FOLDER KUBECONFIG COUNT
// Prints the allocated claims as JSON when the server is ready. The driver answers at once.
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { serveDeviceDriver } from "@nodekeeper/sdk";
import { createDevApiServer } from "@nodekeeper/testing";
import { BENCH_NODE } from "./device-messages.ts";

const [pluginFolder = "", kubeconfig = "", count = "0"] = process.argv.slice(2);
const DRIVER = "accelerators.example.com";
const names = Array.from({ length: Number(count) }, (_, number) => `accelerator-${number}`);

const server = createDevApiServer({ clock: systemClock, log: silentLogger });
await server.start();
server.seedNode(BENCH_NODE);
await server.writeKubeconfig(kubeconfig);
const claims = names.map((device, number) => {
  const name = `claim-${number}`;
  const opaque = { driver: DRIVER, parameters: { mode: "timeSliced" } };
  const { metadata } = server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: { devices: { requests: [{ name: "req", exactly: { deviceClassName: DRIVER, count: 1 } }] } },
    status: {
      allocation: {
        devices: {
          results: [{ request: "req", driver: DRIVER, pool: BENCH_NODE, device }],
          config: [{ source: "FromClaim", requests: ["req"], opaque }],
        },
      },
      reservedFor: [{ resource: "pods", name: `pod-${number}`, uid: `00000000-0000-0000-0000-${number}` }],
    },
  });
  return { namespace: "default", name, uid: metadata.uid };
});
serveDeviceDriver({
  name: DRIVER,
  socketDir: pluginFolder,
  async *devices() {
    yield [{ devices: names.map((name) => ({ name })) }];
  },
  prepare: ({ devices }) =>
    devices.map(({ request, pool, device, configuration }) => ({
      request,
      pool,
      device,
      edits: {
        env: { ACCELERATOR: device, CONFIGURATION: JSON.stringify(configuration[0]?.parameters) },
        deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
      },
    })),
  unprepare: () => {},
});
process.stdout.write(`${JSON.stringify(claims)}\n`);
