import { expect, it } from "vitest";
import type { PresentProblem } from "../devices/index.ts";
import type { PluginStatus } from "../plugins/index.ts";
import type { ReporterStatus } from "../reporting/index.ts";
import { type KnownPlugins, listPlugins } from "./plugin-list.ts";

const lost: ReporterStatus = {
  name: "gpu",
  inTree: false,
  state: "stopped",
  countedSince: 0,
  endpoint: undefined,
  updatedAt: 1,
  contactAt: 1,
  stoppedAt: 2,
  contentBytes: 3,
  problems: [],
  lostReason: "its socket was removed",
  lastError: undefined,
};

const MINUTE = 60_000;

function list(known: Partial<KnownPlugins>) {
  const nothing = { sockets: [], reporters: [], objects: [], evictionPlugins: [], drivers: [] };
  return listPlugins({ ...nothing, calls: new Map(), now: 10 * MINUTE, startedAt: 0, ...known });
}

function registered(type: string): PluginStatus {
  return { type, name: "gpu", registrationSocket: "/p/gpu.sock", state: "registered", since: 1, attempts: 1 };
}

it("shows a lost reporter beside a plugin of another type that has its name", () => {
  const rows = list({ sockets: [registered("DRAPlugin")], reporters: [lost] });
  expect(rows.map(({ type, state }) => `${type} ${state}`)).toEqual([
    "DRAPlugin registered",
    "ReporterPlugin lost",
  ]);
});

it("shows why a lost reporter's registration ended, before the last failed call", () => {
  expect(list({ reporters: [lost] })).toMatchObject([{ state: "lost", error: "its socket was removed" }]);
  const lastError = { message: "GetReportContent: no response within 10000 ms", id: "NK1805" } as const;
  expect(list({ reporters: [{ ...lost, lastError }] })).toMatchObject([
    { error: "its socket was removed; GetReportContent: no response within 10000 ms" },
  ]);
});

it("gives a lost reporter the error of a disconnected plugin, and a failing one that of its last call", () => {
  const lastError = { message: "GetReportContent: no response within 10000 ms", id: "NK1805" } as const;
  expect(list({ reporters: [{ ...lost, lastError }] })).toMatchObject([{ state: "lost", errorId: "NK1808" }]);
  expect(list({ reporters: [lost] })).toMatchObject([{ state: "lost", errorId: "NK1808" }]);
  const running = {
    ...lost,
    state: "running",
    stoppedAt: undefined,
    lostReason: undefined,
    lastError,
  } as const;
  expect(list({ sockets: [registered("ReporterPlugin")], reporters: [running] })).toMatchObject([
    { state: "registered", errorId: "NK1805" },
  ]);
});

it("shows a reporter that is registered once", () => {
  const running = { ...lost, state: "running", stoppedAt: undefined, lostReason: undefined } as const;
  expect(list({ sockets: [registered("ReporterPlugin")], reporters: [running] })).toMatchObject([
    { type: "ReporterPlugin", state: "registered", contentBytes: 3 },
  ]);
});

it("shows eviction plugins inside the agent, and the last call of one behind a socket", () => {
  const plugin = { endpoint: undefined, answeredAt: undefined, problems: [] };
  const rows = list({
    sockets: [registered("EvictionPlugin")],
    evictionPlugins: [
      {
        ...plugin,
        name: "gpu",
        inTree: false,
        lastError: { message: "ThresholdMet: can't be decoded", id: "NK1604", since: 4 },
      },
      { ...plugin, name: "memory", inTree: true, lastError: undefined, problems: ["NoExecute is refused"] },
    ],
  });
  expect(
    rows.map(({ name, state, error, errorId, errorSince }) => [name, state, error, errorId, errorSince]),
  ).toEqual([
    ["gpu", "registered", "ThresholdMet: can't be decoded", "NK1604", 4],
    ["memory", "in-tree", undefined, undefined, undefined],
  ]);
  expect(rows.map(({ problems }) => problems)).toEqual([[], ["NoExecute is refused"]]);
});

it("shows the last contact and the rate of calls since the registration", () => {
  const socket = { ...registered("EvictionPlugin"), since: 6 * MINUTE };
  const plugin = { name: "gpu", inTree: false, endpoint: undefined, answeredAt: 7, problems: [] };
  const calls = new Map([["EvictionPlugin gpu", { count: 48, failures: 2, meanMs: 3 }]]);
  const known = { sockets: [socket], evictionPlugins: [{ ...plugin, lastError: undefined }], calls };
  expect(list(known)).toMatchObject([
    { contactAt: 7, calls: { count: 48, failures: 2, meanMs: 3, perMinute: 12 } },
  ]);
});

it("a reporter's rate is since its messages are counted, also where it registered again", () => {
  const socket = { ...registered("ReporterPlugin"), since: 9.9 * MINUTE };
  const running = { ...lost, state: "running", stoppedAt: undefined, countedSince: 6 * MINUTE } as const;
  const calls = new Map([["ReporterPlugin gpu", { count: 48, failures: 0 }]]);
  expect(list({ sockets: [socket], reporters: [running], calls })).toMatchObject([
    { calls: { perMinute: 12 } },
  ]);
});

it("shows the last message of a driver, and what is wrong with its stream", () => {
  const drivers = [
    {
      name: "gpu",
      messageAt: 5,
      error: "the stream ended",
      writeError: undefined,
      quarantined: 0,
      problems: [],
    },
  ];
  expect(list({ sockets: [registered("DRAPlugin")], drivers })).toMatchObject([
    { type: "DRAPlugin", contactAt: 5, error: "the stream ended" },
  ]);
});

it("shows how many of a driver's devices are quarantined, and each problem with those that have it", () => {
  const name = { errorId: "NK1503", pool: "p", message: "name: must be a DNS label", since: 1 } as const;
  const answer = { errorId: "NK1507", claimUid: "uid-a", since: 2 } as const;
  const driver = {
    ...{ name: "gpu", messageAt: 5, error: undefined, writeError: undefined, quarantined: 3 },
    problems: [
      { ...answer, message: "the claim: edits.env[0]: has no name" },
      { ...answer, pool: "p", device: "gpu-1", message: "the driver did not prepare it" },
      { ...name, device: "Bad Name" },
      // Two problems of one device.
      { ...name, device: "Other Name" },
      { ...name, device: "Other Name" },
      { ...name, errorId: "NK1511", device: "gpu-2", message: "the API server drops bindingConditions" },
    ] as PresentProblem[],
  };
  const rowOf = (quarantined: number, problems: PresentProblem[]) =>
    list({ sockets: [registered("DRAPlugin")], drivers: [{ ...driver, quarantined, problems }] })[0]!;
  const row = rowOf(3, driver.problems);
  expect(row.driverProblems).toEqual(driver.problems);
  expect(row.problems).toEqual([
    "3 devices quarantined",
    "NK1507: claim uid-a: the claim: edits.env[0]: has no name",
    "NK1507: claim uid-a, device gpu-1: the driver did not prepare it",
    "NK1503: device Bad Name and 1 more: name: must be a DNS label",
    "NK1511: device gpu-2: the API server drops bindingConditions",
  ]);
  expect([rowOf(0, []).problems, rowOf(0, []).driverProblems]).toEqual([[], undefined]);
  // Of devices that are published.
  expect(rowOf(0, driver.problems.slice(-1)).problems).toEqual([
    "NK1511: device gpu-2: the API server drops bindingConditions",
  ]);
  const many = Array.from({ length: 1_000 }, (_, at) => ({ ...name, device: `Bad ${at}` }));
  expect(rowOf(5_000, many).problems).toEqual([
    "5000 devices quarantined",
    "NK1503: device Bad 0 and others: name: must be a DNS label",
  ]);
});
