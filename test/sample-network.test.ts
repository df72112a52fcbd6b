import { describe, expect, it } from "vitest";
import { configurationOf } from "../examples/driver-network/configuration.ts";
import {
  attributesOf,
  deviceName,
  freeInterfaces,
  interfaceName,
  type Link,
} from "../examples/driver-network/interfaces.ts";

const link = (ifname: string, more: Partial<Link> = {}): Link => ({
  ifname,
  flags: ["BROADCAST"],
  mtu: 1500,
  addr_info: [],
  ...more,
});
const configured = (...parameters: unknown[]) =>
  configurationOf(
    {
      device: "nic0",
      configuration: parameters.map((each) => ({
        source: "FromClaim" as const,
        parameters: each,
        parametersText: "",
      })),
    },
    "nic0",
    { min_mtu: 68, max_mtu: 9_000 },
  );

describe("interfaces of a node", () => {
  it("are free unless the node uses them", () => {
    const links = [
      link("lo", { flags: ["LOOPBACK", "UP"] }),
      link("uplink"),
      link("uplink6"),
      link("multipath"),
      link("addressed", { addr_info: [{ scope: "global", local: "192.0.2.5", prefixlen: 24 }] }),
      link("part", { master: "bond0" }),
      link("bond0"),
      link("below"),
      link("below.5", { link: "below", linkinfo: { info_kind: "vlan" } }),
      link("local", { addr_info: [{ scope: "link", local: "fe80::1", prefixlen: 64 }] }),
      link("veth0", { link: "veth1", linkinfo: { info_kind: "veth" } }),
      link("veth1", { link: "veth0", linkinfo: { info_kind: "veth" } }),
    ];
    const routes = [{ dev: "uplink" }, { dev: "uplink6" }, { nexthops: [{ dev: "multipath" }] }];
    const free = freeInterfaces(links, routes).map(({ ifname }) => ifname);
    expect(free).toEqual(["bond0", "below.5", "local", "veth0", "veth1"]);
  });

  it.each(["eth1", "eth1.5", "ETH1", "-", "hex-00", "nic_0", "a".repeat(15)])("%s is a device", (name) => {
    const device = deviceName(name);
    expect(device).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    expect(interfaceName(device)).toBe(name);
  });

  it("have attributes", async () => {
    const mac = "02:00:00:00:00:01";
    const veth = link("veth0", { address: mac, mtu: 1_400, linkinfo: { info_kind: "veth" } });
    expect(await attributesOf({ name: "nic0", link: veth, mtu: 1_500 })).toEqual({
      ifName: { string: "nic0" },
      mac: { string: mac },
      mtu: { int: 1_500n },
      type: { string: "veth" },
      virtual: { bool: true },
    });
    const card = link("eth1", { parentbus: "pci", parentdev: "ffff:ff:1f.7" });
    expect(await attributesOf({ name: "eth1", link: card, mtu: 1_500 })).toMatchObject({
      type: { string: "device" },
      virtual: { bool: false },
      "resource.kubernetes.io/pciBusID": { string: "ffff:ff:1f.7" },
    });
  });
});

describe("the configuration of an interface", () => {
  it("is that of the class with the claim's in its place", () => {
    expect(configured()).toEqual({ name: "nic0", addresses: [], routes: [] });
    expect(
      configured(
        { interface: { mtu: 9_000, name: "class0" }, routes: [{ destination: "192.0.2.0/24" }] },
        { interface: { name: "net1", addresses: ["2001:db8::5/64"] } },
      ),
    ).toEqual({
      name: "net1",
      mtu: 9_000,
      addresses: ["2001:db8::5/64"],
      routes: [{ destination: "192.0.2.0/24" }],
    });
  });

  it.each<[string, unknown, string]>([
    ["a text", "net1", "the configuration is not a JSON object"],
    ["an interface that is a list", { interface: [] }, "interface is not a JSON object"],
    ["a long name", { interface: { name: "a".repeat(16) } }, "device nic0: interface.name: "],
    ["a path", { interface: { name: "a/b" } }, "is not the name of a network interface"],
    ["loopback", { interface: { name: "lo" } }, "is not the name of a network interface"],
    ["an address without a prefix", { interface: { addresses: ["192.0.2.5"] } }, "interface.addresses: "],
    ["a long prefix", { interface: { addresses: ["192.0.2.5/33"] } }, '"192.0.2.5/33" is not an address'],
    ["an option", { interface: { addresses: ["-4"] } }, '"-4" is not an address'],
    ["no list", { interface: { addresses: "192.0.2.5/24" } }, "is not a list of at most 16 entries"],
    ["a huge MTU", { interface: { mtu: 9_001 } }, "interface.mtu: 9001 is not within 68 to 9000"],
    ["an MTU beyond doubles", { interface: { mtu: 2n ** 60n } }, "is not within 68 to 9000"],
    ["a route without a network", { routes: [{ gateway: "192.0.2.1" }] }, "routes.destination: "],
    [
      "a gateway that is a name",
      { routes: [{ destination: "0.0.0.0/0", gateway: "gw" }] },
      'routes.gateway: "gw"',
    ],
  ])("is refused: %s", (_, parameters, message) => {
    expect(() => configured(parameters)).toThrow(message);
  });
});
