import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { ApiObject } from "./support/admin-client.ts";
import { Child } from "./support/child.ts";
import { createClaimTemplate, createDeviceClass, resources } from "./support/node/claims.ts";
import { type ClaimsNode, startClaimsNode } from "./support/node/claims-node.ts";
import { addVethPair, ip, removeVethPair, type VethPair } from "./support/node/veth-pair.ts";
import { container, pod, podsPath, untilDeleted, untilPodReady } from "./support/node/workloads.ts";
import { missingForNode } from "./support/node.ts";

const DRIVER = "network.example.com";
const sample = join(import.meta.dirname, "../../examples/driver-network");
const main = join(sample, "main.ts");

interface Address {
  ifname: string;
  mtu: number;
  flags: string[];
  address: string;
  addr_info: { scope: string; local: string; prefixlen: number }[];
}

/** How interfaces come into pods. */
const movers = [
  { by: "the hook", containerd: "newContainerd", moveWith: "hook" },
  { by: "runc", containerd: "netContainerd", moveWith: "netDevices" },
] as const;

it.skipIf(missingForNode())("the sample network driver keeps the contract", async () => {
  const sockets = mkdtempSync(join(tmpdir(), "nkc-"));
  // Only root may change the path of a hook.
  const directory = mkdtempSync("/run/nk-network-");
  const pair = await addVethPair();
  try {
    const command = `${process.execPath} ${main} --socket-dir ${sockets} --directory ${directory} --interfaces ${pair.name}`;
    const agent = join(import.meta.dirname, "../../packages/agent/src/main.ts");
    const configuration = JSON.stringify({
      interface: { name: "net1", addresses: ["192.0.2.5/24"], mtu: 1_400 },
    });
    const args = ["conformance", "driver", sockets, "--command", command, "--configuration", configuration];
    // Fails with the output if the driver fails a check.
    const { stdout } = await promisify(execFile)(process.execPath, [agent, ...args]);
    expect(stdout).toMatch(/^pass {2}status /m);
  } finally {
    await removeVethPair(pair);
    for (const each of [sockets, directory]) rmSync(each, { recursive: true });
  }
});

it.skipIf(missingForNode())(
  "the capabilities of its DaemonSet let it see an interface in a pod and move it back",
  async () => {
    const [, daemonSet] = parseAllDocuments(readFileSync(join(sample, "deploy/daemonset.yaml"), "utf8"));
    const [driver] = daemonSet!.toJS().spec.template.spec.containers;
    const { add, drop } = driver.securityContext.capabilities;
    expect(drop).toEqual(["ALL"]);
    const only = ["-all", ...add.map((name: string) => `+${name.toLowerCase()}`)].join(",");
    const netns = driver.volumeMounts.find(({ mountPath }: ApiObject) => mountPath === "/run/netns");
    expect(netns.mountPropagation).toBe("HostToContainer");
    // As the container: mounts of the node are seen, those made here are not.
    const asContainer = ["unshare", "--mount", "--propagation", "slave", "setpriv"];
    const enter = [...asContainer, "--no-new-privs", `--bounding-set=${only}`, `--inh-caps=${only}`];
    const run = promisify(execFile);
    const pair = await addVethPair();
    const inPod = new Child({
      name: "pod",
      command: "sleep",
      args: ["infinity"],
      logFile: "/dev/null",
      enter: ["unshare", "--net"],
    });
    inPod.start();
    try {
      const hook = join(sample, "move-interface.sh");
      await eventually(async () => {
        // Fails until the process has left the node's network namespace.
        const moving = run(hook, ["in", DRIVER, pair.name, "net1", "mtu", "1400"]);
        moving.child.stdin!.end(JSON.stringify({ pid: inPod.pid }));
        await moving;
      });
      const namespace = `${DRIVER}:${pair.name}:net1:1500`;
      expect(await ip(["-n", namespace, "address", "show", "dev", "net1"], enter)).toMatchObject([
        { mtu: 1_400 },
      ]);
      const [command, ...rest] = [...enter, hook, "back", DRIVER, pair.name];
      await run(command!, rest);
      expect(await ip(["address", "show", "dev", pair.name])).toMatchObject([{ mtu: 1_500 }]);
      expect(await ip<{ name: string }>(["netns", "list"])).not.toContainEqual(
        expect.objectContaining({ name: namespace }),
      );
    } finally {
      await inPod.stop();
      await removeVethPair(pair);
    }
  },
);

describe.each(movers)("network interfaces that $by moves on $containerd", ({ containerd, moveWith }) => {
  const missing = missingForNode(containerd);
  let started: ClaimsNode;
  let driver: Child;
  const pairs: VethPair[] = [];

  beforeAll(async () => {
    if (missing) return;
    for (let count = 0; count < 2; count++) pairs.push(await addVethPair());
    started = await startClaimsNode({
      containerd,
      flags: { "devices-kubelet-plugin-device-status": "true" },
    });
    const { cluster, node, agent } = started;
    // Everything that the node has, so that the driver leaves out what the node uses.
    const interfaces = `${pairs.map(({ name, peer }) => `${name}|${peer}`).join("|")}|lo|eth.*|en.*`;
    const flags = ["--interfaces", interfaces, "--move-with", moveWith, "--interval", "0.5"];
    driver = new Child({
      name: DRIVER,
      command: process.execPath,
      args: [main, "--socket-dir", agent.pluginDirectory, ...flags],
      logFile: join(cluster.directory, "network-driver.log"),
      enter: node.enter,
    });
    driver.start();
    await createDeviceClass(cluster, DRIVER);
    await driver.until("registered with the kubelet", async () => {
      const drivers = JSON.parse(await agent.command("devices", "-o", "json"));
      const found = drivers.find(({ name }: ApiObject) => name === DRIVER);
      expect(found).toMatchObject({ devices: 2, claims: { kubelet: "registered" } });
    });
  });
  afterAll(async () => {
    await driver?.stop();
    await started?.stop();
    for (const pair of pairs) await removeVethPair(pair);
  });

  /** Without times: the driver may report the interface late that the container left and got again. */
  const statusOf = ({ status }: ApiObject): object[] =>
    status.devices.map(({ conditions, ...device }: ApiObject) => ({
      ...device,
      conditions: conditions.map(({ lastTransitionTime: _, ...condition }: ApiObject) => condition),
    }));
  const published = async (): Promise<ApiObject[]> => {
    const selector = `fieldSelector=spec.driver=${DRIVER}`;
    const { items } = await started.cluster.admin.get(`${resources}/resourceslices?${selector}`);
    return items.flatMap(({ spec }: ApiObject) => spec.devices);
  };
  const onNode = async (name: string): Promise<Address | undefined> =>
    (await ip<Address>(["address", "show"])).find(({ ifname }) => ifname === name);
  /** As in the namespace that a pod's container has it in, which a namespace of this name still has. */
  const inPod = async (name: string): Promise<Address | undefined> => {
    const namespaces = await ip<{ name: string }>(["netns", "list"], started.node.enter);
    const namespace = namespaces.find((each) => each.name.startsWith(`${DRIVER}:${name}:`))?.name;
    if (!namespace) return undefined;
    const [found] = await ip<Address>(
      ["-n", namespace, "address", "show", "dev", "net1"],
      started.node.enter,
    );
    return found;
  };
  const untilBack = (name: string) =>
    eventually(async () => {
      const namespaces = await ip<{ name: string }>(["netns", "list"], started.node.enter);
      expect(namespaces.filter((each) => each.name.startsWith(`${DRIVER}:${name}:`))).toEqual([]);
      expect(await onNode(name)).toMatchObject({ mtu: 1_500, addr_info: [] });
    });
  const claimOf = async (name: string): Promise<ApiObject> => {
    const { status } = await started.cluster.admin.get(`${podsPath}/${name}`);
    const [{ resourceClaimName }] = status.resourceClaimStatuses;
    return await started.cluster.admin.get(
      `${resources}/namespaces/default/resourceclaims/${resourceClaimName}`,
    );
  };

  /** A template for an interface by its name. The keys of its configuration need not be sorted: docs/devices.md. */
  const createTemplate = (template: string, { name }: VethPair, parameters: ApiObject) => {
    const expression = `device.attributes["${DRIVER}"].ifName == "${name}" && device.attributes["${DRIVER}"].mtu >= 1500`;
    const exactly = { deviceClassName: DRIVER, selectors: [{ cel: { expression } }] };
    return createClaimTemplate(started.cluster, template, {
      devices: {
        requests: [{ name: "nic", exactly }],
        config: [{ requests: ["nic"], opaque: { driver: DRIVER, parameters } }],
      },
    });
  };
  const claiming = (resourceClaimTemplateName: string, script: string) => ({
    resourceClaims: [{ name: "nic", resourceClaimTemplateName }],
    containers: [
      container({
        command: ["/bin/sh", "-c", script],
        resources: { claims: [{ name: "nic" }] },
        volumeMounts: [{ name: "state", mountPath: "/state" }],
      }),
    ],
    volumes: [{ name: "state", emptyDir: {} }],
    terminationGracePeriodSeconds: 1,
  });
  /** Shows what the container has, fails once if asked to, and stays. */
  const show = (peer: string, { fails = false } = {}) =>
    [
      "busybox ip address show dev net1; busybox ip route; busybox ping -c 1 -W 10 ",
      `${peer}; `,
      ...(fails ? ["if [ ! -e /state/failed ]; then echo > /state/failed; echo fails; exit 1; fi; "] : []),
      "echo ready; trap 'exit 0' TERM; while true; do sleep 0.1; done",
    ].join("");

  it.skipIf(missing)(
    "go to the pod whose claim selects them, with their configuration, and back",
    async () => {
      const { cluster, node } = started;
      const [pair, other] = pairs as [VethPair, VethPair];
      // Neither the interface with the default route nor those with an address of the node.
      const devices = await eventually(async () => {
        const all = await published();
        expect(all.map(({ name }) => name).sort()).toEqual([pair.name, other.name].sort());
        return all;
      });
      expect(devices.find(({ name }) => name === pair.name)?.attributes).toMatchObject({
        ifName: { string: pair.name },
        mac: { string: (await onNode(pair.name))?.address },
        mtu: { int: 1_500 },
        type: { string: "veth" },
      });
      await createTemplate("first", pair, {
        interface: { name: "net1", mtu: 1_400, addresses: [`${pair.network}.2/24`, "2001:db8::2/64"] },
        routes: [{ destination: "203.0.113.0/24", gateway: `${pair.network}.1` }],
      });

      // The container that is started again has the interface again.
      await cluster.admin.create(
        podsPath,
        pod("first", claiming("first", show(`${pair.network}.1`, { fails: true }))),
      );
      const running = await eventually(async () => {
        const found = await untilPodReady(cluster, "first");
        expect(node.logOf(found, "main").match(/^ready$/gm)).toHaveLength(1);
        return found;
      });
      const [before, after = ""] = node.logOf(running, "main").split("fails\n");
      for (const output of [before, after]) {
        expect(output).toMatch(/net1.*LOWER_UP.* mtu 1400 /);
        expect(output).toContain(`inet ${pair.network}.2/24`);
        expect(output).toContain("inet6 2001:db8::2/64");
        expect(output).toContain(`203.0.113.0/24 via ${pair.network}.1 dev net1`);
        expect(output).toContain("1 packets transmitted, 1 packets received");
      }
      expect(await onNode(pair.name)).toBeUndefined();
      const hardwareAddress = (await inPod(pair.name))?.address;
      const status = await eventually(async () => {
        const claim = await claimOf("first");
        expect(claim.status.devices).toMatchObject([
          {
            driver: DRIVER,
            device: pair.name,
            conditions: [{ type: "Ready", status: "True", reason: "InPod" }],
            networkData: {
              interfaceName: "net1",
              ips: [`${pair.network}.2/24`, "2001:db8::2/64"],
              hardwareAddress,
            },
          },
        ]);
        return statusOf(claim);
      });

      // A driver that was killed finds everything again.
      const slices = await published();
      await driver.kill();
      driver.start();
      await driver.until("connected again", async () => {
        const drivers = JSON.parse(await started.agent.command("devices", "-o", "json"));
        expect(drivers.find(({ name }: ApiObject) => name === DRIVER)).toMatchObject({ state: "streaming" });
      });
      await eventually(async () => expect(await published()).toEqual(slices));
      expect(await inPod(pair.name)).toMatchObject({ mtu: 1_400, address: hardwareAddress });
      await eventually(async () => expect(statusOf(await claimOf("first"))).toEqual(status));

      await cluster.admin.delete(`${podsPath}/first`);
      await untilDeleted(cluster, "first");
      await untilBack(pair.name);
    },
  );

  it.skipIf(missing)("come back without the driver, and are free for another pod", async () => {
    const { cluster, node } = started;
    const [, pair] = pairs as [VethPair, VethPair];
    await createTemplate("next", pair, {
      interface: { addresses: [`${pair.network}.2/24`], mtu: 1_300, name: "net1" },
    });
    await cluster.admin.create(podsPath, pod("before", claiming("next", show(`${pair.network}.1`))));
    await untilPodReady(cluster, "before");
    expect(await inPod(pair.name)).toMatchObject({ mtu: 1_300 });
    await driver.kill();
    await cluster.admin.delete(`${podsPath}/before`);
    await untilDeleted(cluster, "before");
    await untilBack(pair.name);

    driver.start();
    await cluster.admin.create(podsPath, pod("after", claiming("next", show(`${pair.network}.1`))));
    const running = await untilPodReady(cluster, "after");
    await eventually(() => expect(node.logOf(running, "main")).toContain("1 packets received"));
    await cluster.admin.delete(`${podsPath}/after`);
    await untilDeleted(cluster, "after");
    await untilBack(pair.name);
  });

  it.skipIf(missing)("stay on the node if they can't be configured, and the pod shows why", async () => {
    const { cluster } = started;
    const [pair] = pairs as [VethPair];
    await createTemplate("unreachable", pair, {
      interface: { name: "net1" },
      routes: [{ destination: "203.0.113.0/24", gateway: "192.0.2.77" }],
    });
    await cluster.admin.create(podsPath, pod("unreachable", claiming("unreachable", "sleep 1000000")));
    await eventually(async () => {
      const { items } = await cluster.admin.get(
        "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=unreachable",
      );
      const messages = items.map(({ message }: ApiObject) => message).join("\n");
      expect(messages).toMatch(/invalid gateway/);
    });
    await cluster.admin.delete(`${podsPath}/unreachable`);
    await untilDeleted(cluster, "unreachable");
    await untilBack(pair.name);
  });
});
