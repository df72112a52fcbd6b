import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const DRIVER = "plain.example.com";

const node = useClaimsNode({ devicesMinWriteInterval: "0s", devicesKubeletPluginMetadata: "true" });

const devices = [
  { name: "device-0", attributes: { model: { string: "alpha" }, serial: { int: 2n ** 60n + 1n } } },
];

function serve(parts: Partial<Parameters<typeof serveDeviceDriver>[0]> = {}) {
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices }];
    },
    ...parts,
  });
  node.drivers.push(driver);
  return driver;
}

/** Stores a claim that was generated from a pod's template, and is allocated the device. */
function claim(name: string) {
  const stored = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default", annotations: { "resource.kubernetes.io/pod-claim-name": "gpu" } },
    spec: {},
    status: {
      allocation: {
        devices: { results: [{ request: "req", driver: DRIVER, pool: NODE, device: "device-0" }] },
      },
      reservedFor: [{ resource: "pods", name: "pod", uid: "11111111-2222-3333-4444-555555555555" }],
    },
  });
  return { namespace: "default", name, uid: stored.metadata.uid! };
}

const cdi = () => join(node.directory, "cdi");

/** The host's file that a container gets, by its path in the container. */
function mounted(): Record<string, string> {
  const mounts = readdirSync(cdi())
    .filter((name) => name.endsWith(".yaml"))
    .flatMap((name) => {
      const text = readFileSync(join(cdi(), name), "utf8");
      const { devices } = JSON.parse(text.slice(text.indexOf("\n")));
      return devices.flatMap(
        (device: { containerEdits: { mounts?: object[] } }) => device.containerEdits.mounts ?? [],
      );
    });
  return Object.fromEntries(
    mounts.map(({ containerPath, hostPath }: Record<string, string>) => [containerPath, hostPath]),
  );
}

it.each([
  ["without preparation", {}],
  [
    "that prepares them",
    { prepare: () => [{ request: "req", pool: NODE, device: "device-0" }], unprepare: () => {} },
  ],
])("containers get the attributes of devices of a driver %s", async (_, parts) => {
  await node.start({ devicesKubeletPluginMetadataDirectory: join(node.directory, "metadata") });
  await serve(parts).ready;
  await eventually(() => {
    const slices = node.cluster.server.store.list("resourceslices.resource.k8s.io");
    expect(slices).toMatchObject([{ spec: { driver: DRIVER } }]);
    // The kubelet would not call.
    expect(slices[0]!.spec).not.toHaveProperty("skipNodeOperations");
  });
  const wanted = claim("pod-gpu-x7k2p");
  const answer = await node.kubelet.prepare(DRIVER, wanted);
  expect(answer[wanted.uid]).toMatchObject({
    error: "",
    devices: [{ cdiDeviceIds: [`k8s.${DRIVER}/claim=${wanted.uid}_device-0`] }],
  });
  const path = `/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/gpu/req/${DRIVER}-metadata.json`;
  const { [path]: file = "" } = mounted();
  const text = readFileSync(file, "utf8");
  expect(text.split("\n")).toHaveLength(3);
  const [first = ""] = text.split("\n");
  expect(first).toContain('"serial":{"int":1152921504606846977}');
  expect(JSON.parse(first)).toMatchObject({
    apiVersion: "metadata.resource.k8s.io/v1beta1",
    metadata: { name: wanted.name, uid: wanted.uid, generation: 1 },
    podClaimName: "gpu",
    requests: [
      {
        name: "req",
        devices: [
          { driver: DRIVER, pool: NODE, name: "device-0", attributes: { model: { string: "alpha" } } },
        ],
      },
    ],
  });
  expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
  expect([readdirSync(cdi()), readdirSync(join(node.directory, "metadata"))]).toEqual([[], []]);
});
