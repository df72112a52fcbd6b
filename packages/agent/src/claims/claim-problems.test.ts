import { DriverAnswerRefused, DriverFailed } from "@nodekeeper/api/errors";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { DriverProblem } from "../devices/index.ts";
import { ClaimProblems } from "./claim-problems.ts";
import type { ClaimRecords, RecordedClaim } from "./claim-records.ts";
import { RefusedAnswer } from "./refused-answer.ts";
import { ClaimWorld, DRIVER, NODE, recordedDevice } from "./testing/claim-world.ts";

let world: ClaimWorld;
let records: ClaimRecords;
let problems: ClaimProblems;
let told: (readonly DriverProblem[])[];

beforeEach(() => {
  world = new ClaimWorld();
  records = world.records();
  told = [];
  problems = new ClaimProblems({ records, drivers: { setClaimProblems: (_, all) => void told.push(all) } });
});
afterEach(() => world[Symbol.dispose]());

const claim = { namespace: "default", name: "a", uid: "uid-a" };
const save = (state: RecordedClaim["state"], boot?: string) =>
  records.save(DRIVER, claim, { state, devices: [recordedDevice("gpu-0")], pods: [], cdi: "", boot });
const refuse = (problem = "edits.env[0]: has no name") =>
  problems.preparationFailed(DRIVER, claim.uid, new RefusedAnswer(problem, recordedDevice("gpu-0")));
const refused = {
  errorId: "NK1507",
  message: "edits.env[0]: has no name",
  pool: NODE,
  device: "gpu-0",
  claimUid: claim.uid,
};

it.each([
  ["is prepared", () => save("prepared")],
  ["is unprepared", () => save("unpreparing")],
  ["is forgotten", () => records.remove(DRIVER, claim.uid)],
])("a refused answer is a problem until the claim %s", async (_, end) => {
  await save("preparing");
  refuse();
  expect(told).toEqual([[refused]]);
  // The kubelet calls again.
  await save("preparing");
  expect(problems.of(DRIVER)).toEqual([refused]);
  await end();
  expect(told.at(-1)).toEqual([]);
});

it("a claim that its driver has lost keeps the problem until it is prepared again", async () => {
  await save("prepared");
  await records.lose(DRIVER, claim.uid);
  refuse();
  await records.removePods(DRIVER, claim.uid, []);
  expect(problems.of(DRIVER)).toEqual([refused]);
  await save("prepared");
  expect(problems.of(DRIVER)).toEqual([]);
});

it("only what is wrong with an answer is a problem, not that there is none", async () => {
  await save("preparing");
  problems.preparationFailed(DRIVER, claim.uid, new DriverFailed({ driver: DRIVER, problem: "it hangs" }));
  problems.preparationFailed(DRIVER, claim.uid, new Error("the disk is full"));
  expect(told).toEqual([]);
  problems.preparationFailed(DRIVER, claim.uid, new DriverAnswerRefused({ problem: "can't be decoded" }));
  expect(told).toMatchObject([[{ errorId: "NK1507", message: "can't be decoded", claimUid: claim.uid }]]);
});

it("a report replaces the problems of the one before, and no others", () => {
  const problem = (message: string): DriverProblem => ({ errorId: "NK1520", message });
  problems.report(DRIVER, "status", []);
  expect(told).toEqual([]);
  problems.report(DRIVER, "status", [problem("a")]);
  problems.report(DRIVER, "health", [problem("b")]);
  problems.report(DRIVER, "status", [problem("c")]);
  problems.report("other.example.com", "status", []);
  expect(told.at(-1)).toEqual([problem("c"), problem("b")]);
  problems.report(DRIVER, "status", []);
  expect(told.at(-1)).toEqual([problem("b")]);
  problems.forgotten(DRIVER);
  expect(told.at(-1)).toEqual([]);
  expect(problems.of(DRIVER)).toEqual([]);
});

it("at most 1,000 answers of a driver are kept", async () => {
  for (let number = 0; number < 2_000; number++)
    problems.preparationFailed(DRIVER, `uid-${number}`, new RefusedAnswer("wrong"));
  expect(problems.of(DRIVER)).toHaveLength(1_000);
});
