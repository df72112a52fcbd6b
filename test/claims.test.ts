import { join } from "node:path";
import type { PreparedDevice } from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { describe, expect, it } from "vitest";
import { prepareAccelerators } from "../examples/driver/preparation.ts";
import { DRIVER, edits, useClaimsDriver } from "./support/claims-driver.ts";
import { NODE } from "./support/cluster.ts";

const { node, serve, claim, cdiFiles, claimsOfDriver } = useClaimsDriver();

describe("prepare", () => {
  it.each(["v1", "v1beta1"] as const)(
    "a claim by DRAPlugin %s: the driver is asked, the CDI file is there",
    async (version) => {
      using own = new DraKubelet(join(node.directory, "reg"), version);
      const driver = await serve();
      const wanted = claim(
        "two",
        ["device-0", "device-1"],
        [
          { source: "FromClaim", requests: ["req"], opaque: { driver: DRIVER, parameters: { mode: "b" } } },
          { source: "FromClass", requests: [], opaque: { driver: DRIVER, parameters: { mode: "a" } } },
          { source: "FromClaim", requests: ["other"], opaque: { driver: DRIVER, parameters: { mode: "c" } } },
          { source: "FromClaim", requests: [], opaque: { driver: "other.example.com", parameters: {} } },
        ],
      );
      const answer = await own.prepare(DRIVER, wanted);
      const ids = ["device-0", "device-1"].map((device) => `k8s.${DRIVER}/claim=${wanted.uid}_${device}`);
      expect(answer[wanted.uid]).toMatchObject({
        error: "",
        devices: ["device-0", "device-1"].map((deviceName, at) => ({
          requestNames: ["req"],
          poolName: NODE,
          deviceName,
          cdiDeviceIds: [ids[at]],
        })),
      });
      expect(driver.prepared).toEqual([
        {
          ...wanted,
          labels: {},
          annotations: {},
          requests: [],
          pods: [{ namespace: "default", name: "pod-of-claim", uid: "11111111-2222-3333-4444-555555555555" }],
          devices: ["device-0", "device-1"].map((device) => ({
            request: "req",
            pool: NODE,
            device,
            consumedCapacity: {},
            adminAccess: false,
            configuration: [
              { source: "FromClass", parameters: { mode: "a" }, parametersText: '{"mode":"a"}' },
              { source: "FromClaim", parameters: { mode: "b" }, parametersText: '{"mode":"b"}' },
            ],
            bindingConditions: [],
            bindingFailureConditions: [],
          })),
        },
      ]);
      expect(cdiFiles()).toEqual([
        {
          name: `nodekeeper-${DRIVER}_${wanted.uid}.yaml`,
          spec: {
            cdiVersion: "0.5.0",
            kind: `k8s.${DRIVER}/claim`,
            devices: ["device-0", "device-1"].map((device) => ({
              name: `${wanted.uid}_${device}`,
              containerEdits: {
                env: [`${device.toUpperCase().replace("-", "_")}=1`],
                deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }],
              },
            })),
          },
        },
      ]);
      // Again, as the kubelet does after its restart: from the record.
      expect(await own.prepare(DRIVER, wanted)).toEqual(answer);
      expect(driver.prepared).toHaveLength(1);
      expect(await claimsOfDriver()).toMatchObject({
        kubelet: "registered",
        claims: [
          {
            name: "two",
            state: "prepared",
            pods: ["default/pod-of-claim"],
            devices: [`${NODE}/device-0`, `${NODE}/device-1`],
          },
        ],
      });

      expect(await own.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
      expect(driver.unprepared).toMatchObject([
        { ...wanted, devices: [{ device: "device-0" }, { device: "device-1" }] },
      ]);
      expect(cdiFiles()).toEqual([]);
      expect((await claimsOfDriver()).claims).toEqual([]);
    },
  );

  it("one claim that fails fails alone, with the driver's message", async () => {
    await serve({
      prepare(claim) {
        if (claim.name === "bad") throw new Error("firmware does not answer");
        return edits(claim);
      },
    });
    const [good, bad] = [claim("good"), claim("bad", ["device-1"])];
    const answer = await node.kubelet.prepare(DRIVER, good, bad);
    expect(answer[good.uid]).toMatchObject({ error: "" });
    expect(answer[bad.uid]).toMatchObject({
      error: `NK1508: driver ${DRIVER}: firmware does not answer`,
      devices: [],
    });
  });

  it.each([
    ["empty edits", { edits: {} }, "edits must not be empty"],
    [
      "a device that the node has not",
      { edits: { deviceNodes: [{ path: "/dev/nodekeeper-none" }] } },
      '"/dev/nodekeeper-none" does not exist on the node',
    ],
    [
      "a file that is no device",
      { edits: { deviceNodes: [{ path: "/dev/x", hostPath: "/etc/hosts" }] } },
      "is not a device on the node",
    ],
    [
      "a relative path",
      { edits: { mounts: [{ hostPath: "/etc", containerPath: "etc" }] } },
      'edits.mounts[0].containerPath: "etc" is not an absolute path',
    ],
    [
      "a path upwards",
      { edits: { mounts: [{ hostPath: "/tmp/../etc", containerPath: "/x" }] } },
      "is not a normalized path",
    ],
    ["a variable without a name", { edits: { env: { "": "1" } } }, "is not NAME=value"],
    [
      "an unknown hook",
      { edits: { hooks: [{ hookName: "later" as "poststop", path: "/bin/true" }] } },
      'hooks[0].hookName: "later"',
    ],
    ["a CDI id that is none", { cdiDeviceIds: ["nonsense"] }, 'is not "<vendor>/<class>=<name>"'],
    ["another device", { device: "device-7" }, "which the claim does not have"],
  ] as [string, Partial<PreparedDevice>, string][])(
    "%s is an error of the claim that names it",
    async (_, part, message) => {
      await serve({
        prepare: (claim) =>
          claim.devices.map(({ request, pool, device }) => ({ request, pool, device, ...part })),
      });
      const wanted = claim("wrong");
      const answer = await node.kubelet.prepare(DRIVER, wanted);
      expect(answer[wanted.uid]!.error).toMatch(/^NK1507: /);
      expect(answer[wanted.uid]!.error).toContain(message);
      expect(cdiFiles()).toEqual([]);
    },
  );

  it("edits for the whole claim are in the file once, for containers with any of its devices", async () => {
    await serve({
      prepare: (claim) => ({
        devices: claim.devices.map(({ request, pool, device }) => ({ request, pool, device })),
        edits: { env: { A: "b" }, additionalGids: [44] },
      }),
    });
    const wanted = claim("whole", ["device-0", "device-1"]);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    const names = ["device-0", "device-1"].map((device) => `${wanted.uid}_${device}`);
    expect(answer[wanted.uid]).toMatchObject({
      error: "",
      devices: names.map((name) => ({ cdiDeviceIds: [`k8s.${DRIVER}/claim=${name}`] })),
    });
    expect(cdiFiles()).toMatchObject([
      {
        spec: {
          cdiVersion: "0.7.0",
          containerEdits: { env: ["A=b"], additionalGids: [44] },
          devices: names.map((name) => ({ name })),
        },
      },
    ]);
  });

  it("what the kubelet names but the API server does not have, or has as another one, is an error", async () => {
    const driver = await serve();
    const wanted = claim("real");
    const absent = { ...wanted, name: "absent", uid: "00000000-0000-0000-0000-000000000001" };
    const other = { ...wanted, uid: "00000000-0000-0000-0000-000000000002" };
    const escaping = { ...wanted, uid: "../../etc/passwd" };
    const answer = await node.kubelet.prepare(DRIVER, absent, other, escaping);
    expect(answer[absent.uid]!.error).toMatch(/^NK1506: .*absent/);
    expect(answer[other.uid]!.error).toMatch(/^NK1506: .*was replaced/);
    expect(answer[escaping.uid]!.error).toContain("is not the UID of a ResourceClaim");
    expect(driver.prepared).toEqual([]);
  });

  it("without the right to get claims the message names what is missing", async () => {
    await serve();
    const wanted = claim("secret");
    node.cluster.fault = ({ path }) => (path.includes("resourceclaims") ? { status: 403 } : undefined);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]!.error).toMatch(
      /^NK1506: .*is not allowed to get resourceclaims \(deploy\/rbac-optional\.yaml\)/,
    );
  });

  it("different claims at once, the same one in turn", async () => {
    const inside = new Map<string, number>();
    let most = 0;
    const all = Promise.withResolvers<void>();
    await serve({
      async prepare(claim) {
        const number = (inside.get(claim.uid) ?? 0) + 1;
        inside.set(claim.uid, number);
        most = Math.max(most, number);
        if (inside.size === 10) all.resolve();
        await all.promise;
        inside.set(claim.uid, number - 1);
        return edits(claim);
      },
    });
    const claims = Array.from({ length: 10 }, (_, at) => claim(`claim-${at}`, [`device-${at}`]));
    const answers = await Promise.all([
      node.kubelet.prepare(DRIVER, ...claims),
      node.kubelet.prepare(DRIVER, ...claims),
    ]);
    for (const answer of answers)
      for (const { uid } of claims) expect(answer[uid]).toMatchObject({ error: "" });
    expect(most).toBe(1);
  });

  it("a shared device: share and consumed capacity reach the driver and the kubelet", async () => {
    const driver = await serve();
    const shares = ["one", "two"].map((shareID) => ({
      request: "req/sub",
      driver: DRIVER,
      pool: NODE,
      device: "device-0",
      shareID,
      consumedCapacity: { memory: "10Gi" },
    }));
    const wanted = claim("shares", shares);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]!.devices).toMatchObject([
      { requestNames: ["req"], shareId: "one", cdiDeviceIds: [`k8s.${DRIVER}/claim=${wanted.uid}_device-0`] },
      {
        requestNames: ["req"],
        shareId: "two",
        cdiDeviceIds: [`k8s.${DRIVER}/claim=${wanted.uid}_device-0_2`],
      },
    ]);
    expect(driver.prepared[0]!.devices).toMatchObject([
      { request: "req/sub", shareId: "one", consumedCapacity: { memory: "10Gi" } },
      { request: "req/sub", shareId: "two" },
    ]);
  });
});

describe("the sample driver's preparation", () => {
  it("names the device and the mode of the claim's configuration, which goes before the class's", async () => {
    await serve({ prepare: prepareAccelerators });
    const config = ["timeSliced", "exclusive"].map((mode, at) => ({
      source: at === 0 ? "FromClaim" : "FromClass",
      requests: [],
      opaque: { driver: DRIVER, parameters: { mode } },
    }));
    const wanted = claim("sample", ["accelerator-3"], config);
    expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
    expect(cdiFiles()[0]?.spec.devices).toMatchObject([
      {
        containerEdits: { env: ["ACCELERATOR_3=timeSliced"], deviceNodes: [{ path: "/dev/accelerator-3" }] },
      },
    ]);
  });

  it("refuses a configuration that makes no sense, with a message for the pod", async () => {
    await serve({ prepare: prepareAccelerators });
    const config = [
      { source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters: { mode: "warp" } } },
    ];
    const wanted = claim("sample", ["accelerator-3"], config);
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    expect(answer[wanted.uid]!.error).toContain('mode "warp" is neither');
  });
});
