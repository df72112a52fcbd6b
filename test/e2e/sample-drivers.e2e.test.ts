import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { claiming, claimSpec, createClaimTemplate, createDeviceClass } from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { pod, podsPath, untilDeleted, untilPodReady } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode } from "./support/node.ts";
import { missingParts, pathOf } from "./support/parts.ts";

/** The samples of examples/, as they are started. */
const samples = [
  {
    language: "TypeScript",
    missing: undefined,
    command: () => [process.execPath, join(import.meta.dirname, "../../examples/driver/main.ts")],
  },
  {
    language: "Go",
    missing: missingParts("goSampleDriver"),
    command: () => [pathOf("goSampleDriver")],
  },
  {
    language: "Python",
    missing: missingParts("pythonSampleDriver"),
    command: () => ["python3", join(pathOf("pythonSampleDriver"), "main.py")],
  },
];
const missing = missingForNode();

it.for(samples)("the one in $language keeps the contract", async (sample, { skip }) => {
  if (sample.missing) skip(sample.missing);
  const directory = mkdtempSync(join(tmpdir(), "nkc-"));
  try {
    const command = [...sample.command(), "--socket-dir", directory].join(" ");
    const main = join(import.meta.dirname, "../../packages/agent/src/main.ts");
    // Fails with the output if the driver fails a check.
    await promisify(execFile)(process.execPath, [
      main,
      "conformance",
      "driver",
      directory,
      "--command",
      command,
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

describe.skipIf(missing)("the sample drivers on a real node", () => {
  let cluster: ControlPlane;
  let node: ClusterNode;
  let agent: AgentProcess;
  let stop: (() => Promise<void>) | undefined;
  let caseEnd: () => unknown = () => {};

  beforeAll(async () => {
    ({ cluster, node, agent, stop } = await startClaimsNode());
  });
  afterEach(() => caseEnd());
  afterAll(() => stop?.());

  /** The sockets that present the driver's name. */
  const socketsOf = async (name: string): Promise<ApiObject[]> => {
    const plugins = JSON.parse(await agent.command("plugins", "list", "-o", "json"));
    return plugins.filter((each: ApiObject) => each.name === name);
  };
  /** The socket that has the driver's name. */
  const ownerOf = async (name: string) => {
    const [owner, ...others] = (await socketsOf(name)).filter(({ state }) => state === "registered");
    expect(others).toEqual([]);
    return owner?.registrationSocket;
  };
  /** UIDs of the driver's ResourceSlices, sorted. */
  const slicesOf = async (name: string) => {
    const { items } = await cluster.admin.get(
      `/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver=${name}`,
    );
    return items.map(({ metadata }: ApiObject) => metadata.uid).sort();
  };

  it.for(samples)("the one in $language: a pod gets what its claim asks for", async (sample, { skip }) => {
    if (sample.missing) skip(sample.missing);
    const id = sample.language.toLowerCase();
    const name = `${id}.example.com`;
    const [command, ...args] = sample.command() as [string, ...string[]];
    const instance = (number: number) =>
      new Child({
        name,
        command,
        args: [...args, "--socket-dir", agent.pluginDirectory, "--name", name],
        logFile: join(cluster.directory, `${name}-${number}.log`),
      });
    const [driver, next] = [instance(1), instance(2)];
    caseEnd = () => Promise.all([driver.stop(), next.stop()]);
    driver.start();
    await createDeviceClass(cluster, name);
    const parameters = { mode: "timeSliced" };
    await createClaimTemplate(cluster, id, claimSpec(name, { count: 2, parameters }));
    await createClaimTemplate(cluster, `${id}-wrong`, claimSpec(name, { parameters: { mode: "warp" } }));
    await driver.until("registered with the kubelet", async () => {
      const drivers = JSON.parse(await agent.command("devices", "-o", "json"));
      const found = drivers.find((each: ApiObject) => each.name === name);
      expect(found).toMatchObject({ devices: 8, claims: { kubelet: "registered", isPreparing: true } });
    });

    await cluster.admin.create(podsPath, pod(id, claiming({ resourceClaimTemplateName: id })));
    await cluster.admin.create(
      podsPath,
      pod(`${id}-wrong`, claiming({ resourceClaimTemplateName: `${id}-wrong` })),
    );
    const running = await untilPodReady(cluster, id);
    await eventually(() => expect(node.logOf(running, "main")).toContain("ready"));
    const output = node.logOf(running, "main");
    expect(output.match(/^ACCELERATOR_\d=timeSliced$/gm)).toHaveLength(2);
    expect(output.match(/^accelerator-\d$/gm)).toHaveLength(2);
    // Healthy, or in its turn to fail.
    await eventually(async () => {
      const { status } = await cluster.admin.get(`${podsPath}/${id}`);
      const [claim] = status.containerStatuses[0].allocatedResourcesStatus ?? [];
      expect(claim?.resources.map(({ health }: ApiObject) => health)).not.toContain("Unknown");
      expect(claim?.resources).toHaveLength(2);
    });
    // What is wrong with a configuration reaches those who describe the pod.
    await eventually(async () => {
      const { items } = await cluster.admin.get(
        `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${id}-wrong`,
      );
      const messages = items.map(({ message }: ApiObject) => message).join("\n");
      expect(messages).toContain('mode "warp" is neither "exclusive" nor "timeSliced"');
    });

    // A rolling update with surge: the next instance is registered before this one ends.
    const slices = () => slicesOf(name);
    const before = await slices();
    const older = await ownerOf(name);
    next.start();
    await next.until("registered", async () => {
      expect(await socketsOf(name)).toHaveLength(2);
      expect([older, undefined]).not.toContain(await ownerOf(name));
    });
    await driver.stop();
    await next.until("alone", async () =>
      expect(await socketsOf(name)).toMatchObject([{ state: "registered" }]),
    );
    await cluster.admin.create(podsPath, pod(`${id}-next`, claiming({ resourceClaimTemplateName: id })));
    await untilPodReady(cluster, `${id}-next`);
    expect(await slices()).toEqual(before);

    const pods = [id, `${id}-next`, `${id}-wrong`];
    for (const each of pods) await cluster.admin.delete(`${podsPath}/${each}`);
    for (const each of pods) await untilDeleted(cluster, each);
    await eventually(() => {
      const files = readdirSync(node.path("/run/cdi"));
      expect(files.filter((file) => file.includes(name))).toEqual([]);
    });
    await next.stop();
    expect(readdirSync(agent.pluginDirectory).filter((file) => file.includes(name))).toEqual([]);
  });
});
