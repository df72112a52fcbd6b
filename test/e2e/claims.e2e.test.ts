import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rawNumber } from "@nodekeeper/core/lib";
import { type ClaimToPrepare, type DeviceHealth, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterEach, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import {
  container,
  deployment,
  deploymentsPath,
  pod,
  podsPath,
  untilDeleted,
  untilPodReady,
  untilReady,
} from "./support/node/workloads.ts";
import { missingForNode } from "./support/node.ts";

const DRIVER = "accelerators.example.com";
const resources = "/apis/resource.k8s.io/v1";
// A double rounds it.
const seed = "5764611469732290987";

/** Prints what its container got of a device, as an author's first driver would have it. */
const curious = ["/bin/sh", "-c", "env | grep ^ACC; ls /dev | grep ^acc; sleep 1000000"];

function template(name: string, count: number, parameters?: ApiObject): ApiObject {
  const config = parameters && [{ requests: ["accelerators"], opaque: { driver: DRIVER, parameters } }];
  const requests = [{ name: "accelerators", exactly: { deviceClassName: DRIVER, count } }];
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaimTemplate",
    metadata: { name },
    spec: { spec: { devices: { requests, ...(config ? { config } : {}) } } },
  };
}

/** A pod's spec with a claim of that template. */
function claiming(templateName: string): ApiObject {
  return {
    resourceClaims: [{ name: "devices", resourceClaimTemplateName: templateName }],
    containers: [container({ command: curious, resources: { claims: [{ name: "devices" }] } })],
    terminationGracePeriodSeconds: 1,
  };
}

// The kubelet's own words for a driver that only streams were "DRA driver ... is not registered".
describe.each(["containerd", "newContainerd"] as const)("claims on a node with %s", (part) => {
  const ends: Array<() => unknown> = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  it.skipIf(missingForNode(part))(
    "pods that claim devices run with them, whatever is killed or emptied, and nothing stays prepared",
    async () => {
      const { cluster, node, agent, stop } = await startClaimsNode({ containerd: part });
      ends.push(stop);

      const prepared = new Map<string, ClaimToPrepare>();
      let report = Promise.withResolvers<DeviceHealth[]>();
      const serve = () =>
        serveDeviceDriver({
          name: DRIVER,
          socketDir: agent.pluginDirectory,
          async *devices() {
            yield [{ devices: Array.from({ length: 6 }, (_, at) => ({ name: `accelerator-${at}` })) }];
          },
          prepare(claim) {
            prepared.set(claim.uid, claim);
            return claim.devices.map(({ request, pool, device, configuration }) => ({
              request,
              pool,
              device,
              edits: {
                env: {
                  [device.toUpperCase().replace("-", "_")]: String(
                    (configuration[0]?.parameters as { mode?: string })?.mode ?? "plain",
                  ),
                },
                deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
              },
            }));
          },
          unprepare: ({ uid }) => void prepared.delete(uid),
          async *health() {
            yield Array.from({ length: 6 }, (_, at) => ({ device: `accelerator-${at}`, healthy: true }));
            yield await report.promise;
          },
        });
      let driver = serve();
      ends.push(() => driver.stop());
      await cluster.admin.create(`${resources}/deviceclasses`, {
        apiVersion: "resource.k8s.io/v1",
        kind: "DeviceClass",
        metadata: { name: DRIVER },
        spec: { selectors: [{ cel: { expression: `device.driver == "${DRIVER}"` } }] },
      });
      const templates = `${resources}/namespaces/default/resourceclaimtemplates`;
      await cluster.admin.create(templates, template("two", 2));
      await cluster.admin.create(templates, template("one-fast", 1, { mode: "fast", seed: rawNumber(seed) }));

      // Two pods with two devices each.
      await cluster.admin.create(deploymentsPath, deployment("web", 2, claiming("two")));
      const pods = await untilReady(cluster, "app=web", 2);
      // A container counts as running before its first command has written anything.
      const outputs = await eventually(() =>
        pods.map((each) => {
          const output = node.logOf(each, "main");
          expect(output.match(/^ACCELERATOR_\d=plain$/gm)).toHaveLength(2);
          expect(output.match(/^accelerator-\d$/gm)).toHaveLength(2);
          return output;
        }),
      );
      const all = outputs.flatMap((output) => output.match(/^accelerator-\d$/gm) ?? []);
      expect(new Set(all).size).toBe(4);

      // A claim with configuration, prepared by an agent and a driver that are started again.
      await agent.child.kill();
      await driver.stop();
      agent.child.start();
      driver = serve();
      // A pod that comes before is tried again, by the kubelet's schedule, 90 s later.
      await eventually(() =>
        expect(agent.child.log.split("registered with the kubelet").length).toBeGreaterThan(2),
      );
      await cluster.admin.create(podsPath, pod("fast", claiming("one-fast")));
      const fast = await untilPodReady(cluster, "fast");
      const texts = [...prepared.values()].flatMap(({ devices }) =>
        devices.flatMap(({ configuration }) => configuration.map(({ parametersText }) => parametersText)),
      );
      expect(texts).toEqual([`{"mode":"fast","seed":${seed}}`]);
      const [used] = await eventually(() => {
        expect(node.logOf(fast, "main")).toMatch(/^ACCELERATOR_\d=fast$/m);
        const device = node.logOf(fast, "main").match(/^accelerator-\d$/m);
        expect(device).not.toBeNull();
        return device!;
      });

      // The CDI directory is emptied as by a reboot: a container that is started anew finds its device.
      const cdi = node.path("/run/cdi");
      for (const name of readdirSync(cdi)) rmSync(join(cdi, name));
      await eventually(() =>
        expect(readdirSync(cdi).filter((name) => name.endsWith(".yaml"))).toHaveLength(3),
      );

      // A device that turns unhealthy shows in the pod, and repels others.
      report.resolve(
        Array.from({ length: 6 }, (_, at) => ({
          device: `accelerator-${at}`,
          healthy: `accelerator-${at}` !== used,
          message: "too hot",
          taintEffect: "NoSchedule" as const,
        })),
      );
      report = Promise.withResolvers();
      await eventually(async () => {
        const { status } = await cluster.admin.get(`${podsPath}/fast`);
        expect(status.containerStatuses[0].allocatedResourcesStatus).toMatchObject([
          { resources: [{ health: "Unhealthy" }] },
        ]);
      });
      await eventually(async () => {
        const { items } = await cluster.admin.get(`${resources}/resourceslices`);
        const devices = items.flatMap(({ spec }: ApiObject) => spec.devices);
        expect(devices.filter(({ taints }: ApiObject) => taints).map(({ name }: ApiObject) => name)).toEqual([
          used,
        ]);
      });

      // Kubelet, agent and driver are killed while everything ends.
      await cluster.admin.delete(`${deploymentsPath}/web`);
      await node.kubelet.kill();
      await agent.child.kill();
      node.kubelet.start();
      agent.child.start();
      await cluster.admin.delete(`${podsPath}/fast`);
      await untilDeleted(cluster, "fast");
      await eventually(async () => {
        expect((await cluster.admin.get(podsPath)).items).toEqual([]);
        expect([...prepared]).toEqual([]);
        expect(readdirSync(cdi).filter((name) => name.endsWith(".yaml"))).toEqual([]);
      });
    },
  );
});
