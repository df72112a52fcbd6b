import {
  type FieldType,
  GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { customNodeResource, metadata, node, type ReportContent, status } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type Neighbour, startNeighbour } from "./support/neighbour.ts";
import { type GoodPlugin, rawField, startBytesPlugin, startGoodPlugin, widgets } from "./support/plugins.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let neighbour: Neighbour;
let sloppy: GoodPlugin;
let value = 1;

beforeAll(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster);
  neighbour = await startNeighbour(cluster, agent.pluginDir);
  sloppy = await startGoodPlugin(agent.pluginDir, "sloppy", widgets("sloppy", value));
});
afterAll(async () => {
  await sloppy.stop();
  await neighbour.stop();
  await agent.stop();
  await cluster.stop();
});

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

const cases: [string, ReportContent, RegExp][] = [
  ["JSON that is not JSON", rawField("conditions", "{not json"), /status\."conditions".*not JSON/],
  [
    "quantities of a Node that the API server refuses",
    node(status("capacity", { "bad.dev/negative": "-1", "bad.dev/part": "1m" })),
    /"bad\.dev\/negative" is negative: "-1".*\n.*"bad\.dev\/part" must be a whole number, is "1m"/,
  ],
  [
    "quantities of a Node that are too large for the API server",
    node(status("capacity", { "bad.dev/bytes": "9Pi", "bad.dev/count": "9223372036854776" })),
    /"bad\.dev\/bytes" is refused by the API server, .*: "9Pi".*\n.*"bad\.dev\/count" is refused by/,
  ],
  ["a number that no double reaches", rawField("far", "1e999"), /status\."far".*number 1e999 is too large/],
  [
    "bytes that are not UTF-8",
    rawField("conditions", Buffer.from([0xff, 0xfe])),
    /status\."conditions".*not JSON/,
  ],
  ["a wrong type of a known field", rawField("topologyZone", '"a string"'), /must be array, is string/],
  ["a wrong type inside a known list", rawField("topologyZone", "[1]"), /item 0 must be object, is number/],
  [
    "an unknown field type",
    rawField("conditions", "[]", 7 as FieldType),
    /unknown field type 7 \(0 Spec, 1 Status, 2 Metadata\)/,
  ],
  ["a nil kind", { groupVersionKind: undefined, field: [] }, /content 1 has no groupVersionKind/],
  [
    "a field named __proto__",
    rawField("__proto__", '{"polluted":true}'),
    /"__proto__".*: a field name must be/,
  ],
  [
    "a field named constructor",
    rawField("constructor", '{"polluted":true}'),
    /"constructor".*: a field name must be/,
  ],
  [
    "a field name of 10,000 characters",
    rawField("x".repeat(10_000), "1"),
    /"x{100}"\.\.\. \(10000 characters\).*: a field name must be/,
  ],
  ["JSON nested 100,000 deep", rawField("deep", nested(100_000)), /status\."deep".*(nested|deep|stack)/i],
  [
    "5,000 fields",
    customNodeResource(...Array.from({ length: 5_000 }, (_, n) => status(`field${n}`, n))),
    /more than 1000 fields/,
  ],
  [
    "labels of all kinds of nonsense",
    node(metadata("labels", { "": "x", "a/b/c": "x", fine: "a b", ["x".repeat(64)]: "x" })),
    /"a\/b\/c" is not a qualified name/,
  ],
  [
    "other clients' taints for the agent's own",
    customNodeResource(metadata("annotations", { "nodekeeper.dev/own-taints": '["theirs:NoSchedule:"]' })),
    /"nodekeeper\.dev\/own-taints" is reserved for the agent/,
  ],
];

describe("a plugin that sends", () => {
  it.each(cases)("%s is named, and what is good beside it is published", async (_, bad, problem) => {
    sloppy.say(widgets("sloppy", ++value), bad);
    await untilWidgets(cluster, "sloppy", value);
    const row = await agent.plugin("sloppy");
    expect(row?.problems.join("\n")).toMatch(problem);
    expect(row?.state).toBe("registered");
    await neighbour.update();
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("nothing wrong any more has no problems any more", async () => {
    sloppy.say(widgets("sloppy", ++value));
    await untilWidgets(cluster, "sloppy", value);
    expect((await agent.plugin("sloppy"))?.problems).toEqual([]);
    expect(Object.keys(cluster.cnr().status)).toEqual(["resources"]);
  });

  it("a slip in one field keeps that field's last good value", async () => {
    sloppy.say(widgets("sloppy", ++value), rawField("topologyPolicy", '"numeric"'));
    await until("the policy", () => cluster.cnr().status.topologyPolicy === "numeric");
    sloppy.say(widgets("sloppy", ++value), rawField("topologyPolicy", '"num'));
    await untilWidgets(cluster, "sloppy", value);
    expect(cluster.cnr().status.topologyPolicy).toBe("numeric");
    sloppy.say(widgets("sloppy", ++value));
    await until("it goes when it is not said", () => cluster.cnr().status.topologyPolicy === undefined);
  });

  it("JSON with a member __proto__ is refused whole, and changes no object", async () => {
    const member = '{"a":{"__proto__":{"polluted":true}},"b":2}';
    sloppy.say(widgets("sloppy", ++value), rawField("nodeMetricStatus", member));
    await untilWidgets(cluster, "sloppy", value);
    expect((await agent.plugin("sloppy"))?.problems.join()).toMatch(/nodeMetricStatus.*key "__proto__" at a/);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(cluster.cnr().status.nodeMetricStatus).toBeUndefined();
    await neighbour.update();
  });

  it("a message that is no protobuf is named, and the last content stays", async () => {
    const garbled = await startBytesPlugin(agent.pluginDir, "garbled");
    garbled.say(GetReportContentResponse.encode({ content: [widgets("garbled", 1)] }).finish());
    await untilWidgets(cluster, "garbled", 1);
    // A field that says it is longer than the message.
    garbled.say(Uint8Array.of(0x0a, 0x7f));
    await until("the trouble is named", async () =>
      (await agent.plugin("garbled"))?.problems.join().includes("the message can't be decoded"),
    );
    await neighbour.update();
    expect(cluster.widgets("garbled")).toBe("1");
    garbled.stop();
  });
});
