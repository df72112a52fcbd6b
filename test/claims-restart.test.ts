import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ClaimToPrepare } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { DRIVER, useClaimsDriver } from "./support/claims-driver.ts";
import { NODE } from "./support/cluster.ts";

const CLAIMS = "resourceclaims.resource.k8s.io";

const { node, serve, claim, cdiFiles, claimsOfDriver } = useClaimsDriver();

describe("unprepare", () => {
  const parameters = { mode: "exclusive" };
  const config = [{ source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters } }];
  const devices = [
    {
      request: "req",
      driver: DRIVER,
      pool: NODE,
      device: "device-0",
      shareID: "one",
      consumedCapacity: { memory: "10Gi" },
    },
    { request: "watch", driver: DRIVER, pool: NODE, device: "device-1", adminAccess: true },
  ];

  const untilConnected = () => until("connected", async () => (await claimsOfDriver())?.isPreparing === true);

  it("carries what prepare had, also after the agent was restarted", async () => {
    const driver = await serve();
    const wanted = claim("whole", devices, config);
    await node.kubelet.prepare(DRIVER, wanted);
    await node.agent.stop();
    await node.start();
    await untilConnected();
    expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
    expect(driver.unprepared).toEqual(driver.prepared);
    expect(driver.unprepared[0]).toMatchObject({
      pods: [{ name: "pod-of-claim" }],
      devices: [
        { shareId: "one", consumedCapacity: { memory: "10Gi" }, configuration: [{ parameters }] },
        { device: "device-1", adminAccess: true },
      ],
    });
  });

  it("has no configuration where the state directory was lost, and all else", async () => {
    const driver = await serve();
    const wanted = claim("found", devices, config);
    await node.kubelet.prepare(DRIVER, wanted);
    await node.agent.stop();
    rmSync(node.agent.stateDir, { recursive: true });
    await node.start();
    await untilConnected();
    await until("recorded", async () => (await claimsOfDriver())?.claims.length === 1);
    expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
    const [{ devices: prepared, ...rest }] = driver.prepared as [ClaimToPrepare];
    const left = prepared.map((device) => ({ ...device, configuration: [] }));
    expect(driver.unprepared).toEqual([{ ...rest, devices: left }]);
  });
});

describe("opaque parameters", () => {
  // What a parser of JSON in JavaScript changes: integers beyond 2^53, forms of numbers, keys of digits, escapes.
  const parameters =
    '{"seed":5764611469732290987,"ratio":1.0,"far":1E400,"10":"\\u003cb\\u003e","2":[-9223372036854775808],"a":1,"a":2}';

  it("reach the driver byte for byte as the API server sent them, also after the agent was restarted", async () => {
    const driver = await serve();
    const wanted = claim(
      "exact",
      ["device-0"],
      [{ source: "FromClaim", requests: [], opaque: { driver: DRIVER, parameters: {} } }],
    );
    const sent = JSON.stringify(node.cluster.server.store.get(CLAIMS, "exact", "default")).replace(
      '"parameters":{}',
      `"parameters":${parameters}`,
    );
    node.cluster.fault = ({ method, path }) =>
      method === "GET" && path.endsWith("/resourceclaims/exact") ? { status: 200, body: sent } : undefined;
    expect((await node.kubelet.prepare(DRIVER, wanted))[wanted.uid]).toMatchObject({ error: "" });
    expect(driver.prepared[0]!.devices[0]!.configuration).toEqual([
      {
        source: "FromClaim",
        parametersText: parameters,
        parameters: {
          seed: 5764611469732290987n,
          ratio: 1,
          far: Number.POSITIVE_INFINITY,
          10: "<b>",
          2: [-9223372036854775808n],
          a: 2,
        },
      },
    ]);
    await node.agent.stop();
    await node.start();
    await until("connected", async () => (await claimsOfDriver())?.isPreparing === true);
    expect(await node.kubelet.unprepare(DRIVER, wanted)).toEqual({ [wanted.uid]: { error: "" } });
    expect(driver.unprepared[0]!.devices).toEqual(driver.prepared[0]!.devices);
  });
});

describe("what happens in between", () => {
  it("a CDI directory that is emptied is filled again, without the driver", async () => {
    const driver = await serve();
    const wanted = claim("lasting");
    await node.kubelet.prepare(DRIVER, wanted);
    const before = cdiFiles();
    rmSync(join(node.directory, "cdi"), { recursive: true });
    await eventually(() => expect(cdiFiles()).toEqual(before));
    expect(driver.prepared).toHaveLength(1);
  });

  it("files are there again after the agent was stopped", async () => {
    await serve();
    const wanted = claim("lasting");
    await node.kubelet.prepare(DRIVER, wanted);
    const before = cdiFiles();
    await node.agent.stop();
    rmSync(join(node.directory, "cdi"), { recursive: true });
    await node.start();
    await eventually(() => expect(cdiFiles()).toEqual(before));
  });

  it("a claim that ends while its driver is disconnected ends; the driver undoes it when it is back", async () => {
    const first = await serve();
    const wanted = claim("orphan");
    await node.kubelet.prepare(DRIVER, wanted);
    await first.stop();
    await until("disconnected", async () => (await claimsOfDriver())?.isPreparing === false);
    expect((await node.kubelet.unprepare(DRIVER, wanted))[wanted.uid]).toEqual({ error: "" });
    expect(cdiFiles()).toEqual([]);

    const second = await serve();
    await until("undone", () => second.unprepared.length === 1);
    expect(second.unprepared).toMatchObject([{ ...wanted, devices: [{ device: "device-0" }] }]);
    await until("forgotten", async () =>
      (await claimsOfDriver()).claims.every(({ name }: { name: string }) => name !== "orphan"),
    );
    const next = claim("next");
    expect((await node.kubelet.prepare(DRIVER, next))[next.uid]).toMatchObject({ error: "" });
  });

  it("a lost state database is made again of the files", async () => {
    await serve();
    const wanted = claim("remembered");
    const answer = await node.kubelet.prepare(DRIVER, wanted);
    await node.agent.stop();
    rmSync(node.agent.stateDir, { recursive: true });
    await node.start();
    await until("recorded", async () => (await claimsOfDriver())?.claims.length === 1);
    expect(cdiFiles()).toHaveLength(1);
    expect(await node.kubelet.prepare(DRIVER, wanted)).toEqual(answer);
  });
});
