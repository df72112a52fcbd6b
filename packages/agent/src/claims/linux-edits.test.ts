import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DeepPartial,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkFile, specOf } from "./cdi-file.ts";
import { refuseTakenInterfaces } from "./claim-interfaces.ts";
import { HostFiles } from "./host-files.ts";
import { preparedOf } from "./prepared-claim.ts";
import { DRIVER, recordedDevice } from "./testing/claim-world.ts";

// A node whose default route is on a bond of eth0 and eth1 for IPv4, and on wlan0 for IPv6.
let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "nkle-"));
  for (const directory of [
    "proc/1/net",
    "sys/class/net/eth0/upper_bond0",
    "sys/class/net/eth1/upper_bond0",
    "sys/class/net/bond0/upper_bond0.100",
    "sys/class/net/bond0.100",
    "sys/class/net/eth2",
    "sys/class/net/wlan0",
  ])
    mkdirSync(join(root, directory), { recursive: true });
  const route = [
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
    "bond0.100\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
    "eth2\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
  ];
  const [any, gateway] = ["0".repeat(32), `fd${"0".repeat(29)}1`];
  const ipv6 = [
    `${any} 00 ${any} 00 ${gateway} 00000400 00000003 00000000 00000003    wlan0`,
    `fd${"0".repeat(30)} 40 ${any} 00 ${any} 00000100 00000001 00000000 00000001     eth2`,
    `${any} 00 ${any} 00 ${any} ffffffff 00000001 00000000 00200200       lo`,
  ];
  writeFileSync(join(root, "proc/1/net/route"), `${route.join("\n")}\n`);
  writeFileSync(join(root, "proc/1/net/ipv6_route"), `${ipv6.join("\n")}\n`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

type Answer = DeepPartial<PrepareDevicesResponse>;
const devices = ["gpu-0", "gpu-1"].map(recordedDevice);
const owner = {
  driver: DRIVER,
  namespace: "default",
  name: "a",
  uid: "uid-1",
  boot: "b",
  driverUid: 0,
  pods: [],
};

function hostWith(allowed: string[], at = root): HostFiles {
  return new HostFiles({ root: at, allowed });
}

/** Prepares two devices, the first with these edits. */
async function prepared(edits: Answer["edits"], rest: Answer = {}, host = hostWith(["/"])) {
  const answers = devices.map((device, at) => ({
    ...device,
    ...(at === 0 && { edits }),
    ...rest.devices?.[at],
  }));
  const answer = PrepareDevicesResponse.fromPartial({ ...rest, devices: answers });
  return await preparedOf(owner, devices, answer, host);
}

const net = (hostInterfaceName: string, name = hostInterfaceName) => ({
  netDevices: [{ hostInterfaceName, name }],
});

it.each<[string, Answer["edits"], string]>([
  ["group 0", { additionalGids: [0] }, "edits.additionalGids[0]: 0 is not allowed"],
  ["group -1", { additionalGids: [4294967295] }, "edits.additionalGids[0]: 4294967295 is not allowed"],
  ["a group twice", { additionalGids: [7, 8, 7] }, "edits.additionalGids[2]: 7 is duplicated"],
  [
    "many groups",
    { additionalGids: Array.from({ length: 257 }, (_, at) => at + 1) },
    "edits.additionalGids: has 257 entries, more than 256",
  ],
  ["RDT without a field", { intelRdt: {} }, "edits.intelRdt: has no field; omit it"],
  [
    "a class outside",
    { intelRdt: { closId: "../x" } },
    'edits.intelRdt.closId: "../x" is not the name of a directory',
  ],
  [
    "the parent class",
    { intelRdt: { closId: ".." } },
    'edits.intelRdt.closId: ".." is not the name of a directory',
  ],
  ["a long class", { intelRdt: { closId: "a".repeat(4096) } }, "is not the name of a directory"],
  [
    "two lines",
    { intelRdt: { schemata: ["L3:0=f\nMB:0=1"] } },
    "edits.intelRdt.schemata[0]: contains a line break",
  ],
  [
    "two lines of L3",
    { intelRdt: { l3CacheSchema: "L3:0=f\n" } },
    "edits.intelRdt.l3CacheSchema: contains a line break",
  ],
  ["no name", net("eth2", ""), "edits.netDevices[0].name: is empty"],
  ["a long name", net("eth2", "a".repeat(16)), "edits.netDevices[0].name:"],
  [
    "a slash",
    net("a/b"),
    'edits.netDevices[0].hostInterfaceName: "a/b" is not the name of a network interface',
  ],
  ["a space", net("eth2", "a b"), 'edits.netDevices[0].name: "a b" is not the name'],
  ["the directory", net(".."), 'hostInterfaceName: ".." is not the name'],
  ["loopback", net("lo"), '"lo" is not the name'],
  [
    "the default route",
    net("bond0.100"),
    'edits.netDevices[0].hostInterfaceName: "bond0.100": carries a default route of the node, which would lose its network connection',
  ],
  [
    "a card of the bond with the VLAN with it",
    net("eth1"),
    '"eth1": "bond0.100" on top of it carries a default route',
  ],
  ["the default route of IPv6", net("wlan0"), '"wlan0": carries a default route'],
  [
    "an interface twice",
    { netDevices: [...net("eth2").netDevices, ...net("eth2", "other").netDevices] },
    `edits.netDevices: the node's interface "eth2" is given twice`,
  ],
])("%s is refused, and the message names device and field", async (_, edits, message) => {
  await expect(prepared(edits)).rejects.toMatchObject({
    id: "NK1507",
    message: expect.stringContaining(message),
  });
});

it("an interface belongs to one device of the claim, and its name in the container to one interface", async () => {
  const second = (edits: Answer["edits"]) => ({ devices: [{}, { edits }] });
  await expect(prepared(net("eth2"), second(net("eth2", "b")))).rejects.toThrow(
    `the node's interface "eth2" is given twice`,
  );
  await expect(prepared(net("eth2", "a"), second(net("eth3", "a")))).rejects.toThrow(
    `the container's interface "a" is given twice`,
  );
  await expect(prepared(net("eth2", "a"), { edits: net("eth3", "a") })).rejects.toThrow("is given twice");
});

it.each<[string, Answer["edits"]]>([
  ["0.5.0", { env: ["A=b"] }],
  ["0.7.0", { additionalGids: [7] }],
  ["0.7.0", { intelRdt: { closId: "gold", l3CacheSchema: "L3:0=f", memBwSchema: "MB:0=50" } }],
  ["1.1.0", { intelRdt: { schemata: ["L3:0=f"] } }],
  ["1.1.0", { intelRdt: { enableMonitoring: true } }],
  ["1.1.0", { intelRdt: { closId: "/" } }],
  ["1.1.0", net("eth2")],
])("the file has version %s for %j, of a device or the claim", async (version, edits) => {
  expect(specOf((await prepared(edits)).cdi).cdiVersion).toBe(version);
  expect(specOf((await prepared(undefined, { edits })).cdi).cdiVersion).toBe(version);
});

it("another claim does not get an interface that a claim has", async () => {
  const { cdi } = await prepared(net("eth2"));
  const record = (uid: string) => ({ driver: DRIVER, uid, namespace: "default", name: "first", cdi });
  expect(() => refuseTakenInterfaces(cdi, { driver: DRIVER, uid: "uid-2" }, [record("uid-1")])).toThrow(
    `ResourceClaim default/first of driver ${DRIVER} has the node's interface "eth2"`,
  );
  // The claim itself is prepared again.
  refuseTakenInterfaces(cdi, { driver: DRIVER, uid: "uid-1" }, [record("uid-1")]);
  refuseTakenInterfaces((await prepared(net("eth3"))).cdi, { driver: DRIVER, uid: "uid-2" }, [
    record("uid-1"),
  ]);
});

it("hostPaths permits interfaces by their path in /sys/class/net", async () => {
  await prepared(net("eth2"), {}, hostWith(["/dev", "/sys/class/net/eth2"]));
  await prepared(net("eth2"), {}, hostWith(["/sys/class/net"]));
  await expect(prepared(net("eth2"), {}, hostWith(["/dev", "/sys/class/net/eth"]))).rejects.toThrow(
    'edits.netDevices[0].hostInterfaceName: "/sys/class/net/eth2" is outside of /dev, /sys/class/net/eth (devices.kubeletPlugin.hostPaths)',
  );
  await expect(prepared(net("bond0.100"), {}, hostWith(["/sys/class/net"]))).rejects.toThrow("default route");
});

it("the node's routes are read once for all interfaces of a preparation", async () => {
  const node = join(root, "changing");
  const route = join(node, "proc/1/net/route");
  mkdirSync(join(node, "proc/1/net"), { recursive: true });
  writeFileSync(route, "Iface\tDestination\n");
  const host = hostWith(["/"], node);
  const [first, next] = [host.forDriverOf(0), host.forDriverOf(0)];
  await first.checkInterface("eth2", "f");
  writeFileSync(route, "eth3\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
  await first.checkInterface("eth3", "f");
  await expect(next.checkInterface("eth3", "f")).rejects.toThrow("carries a default route");
});

it("an interface is refused if the agent can't read the node's routes", async () => {
  await expect(prepared(net("eth2"), {}, hostWith(["/"], join(root, "none")))).rejects.toThrow(
    /"eth2" may be the node's uplink: its routes can't be read \(hostRoot\): ENOENT/,
  );
});

it("edits for the whole claim are in the file once, and each device brings them to its containers", async () => {
  const { cdi, devices: answered } = await prepared(undefined, {
    edits: { env: ["A=b"], additionalGids: [7] },
  });
  const spec = specOf(cdi);
  expect(spec).toMatchObject({ cdiVersion: "0.7.0", containerEdits: { env: ["A=b"], additionalGids: [7] } });
  expect(spec.devices.map(({ containerEdits }) => containerEdits)).toEqual(
    Array(2).fill({ env: ["NODEKEEPER_PREPARED=true"] }),
  );
  expect(answered.map(({ cdiDeviceIds }) => cdiDeviceIds)).toEqual(
    spec.devices.map(({ name }) => [`${spec.kind}=${name}`]),
  );
  await expect(prepared(undefined, { edits: {} })).rejects.toThrow("the claim: edits must not be empty");
  await expect(prepared(undefined, { edits: { env: ["A"] } })).rejects.toThrow(
    'the claim: edits.env[0]: "A" is not NAME=value',
  );
});

it("paths and interfaces of the claim's edits are checked again before the file is written again", async () => {
  const hook = { hookName: "poststop", path: "/proc/1/net/route" };
  const { cdi } = await prepared(
    undefined,
    { edits: { hooks: [hook] } },
    hostWith(["/proc"]).forDriverOf(undefined),
  );
  await expect(checkFile(cdi, hostWith(["/opt"]))).rejects.toThrow("edits.hooks[0].path: ");
  const { cdi: withInterface } = await prepared(undefined, { edits: net("eth2") });
  await checkFile(withInterface, hostWith(["/"]));
  await expect(checkFile(withInterface, hostWith(["/opt"]))).rejects.toThrow(
    "edits.netDevices[0].hostInterfaceName: ",
  );
});

it.each<[Record<string, string>, string | undefined]>([
  [{ "example.com/a": "any\ntext", Plain_1: "", "Example.com/A": "" }, undefined],
  [{ "a b": "" }, 'annotations: "a b" is not a key of annotations'],
  [{ "example.com/": "" }, 'annotations: "example.com/" is not a key of annotations'],
  [{ ["a".repeat(64)]: "" }, "is not a key of annotations"],
  [{ a: "x".repeat(256 * 1024) }, "annotations: 262145 bytes, more than 262144"],
])("annotations as in Kubernetes: %#", async (annotations, message) => {
  const answer = prepared(undefined, { devices: [{ annotations }] });
  if (message !== undefined) return await expect(answer).rejects.toThrow(message);
  const spec = specOf((await answer).cdi);
  expect(spec).toMatchObject({ cdiVersion: "0.6.0", devices: [{ annotations }] });
});
