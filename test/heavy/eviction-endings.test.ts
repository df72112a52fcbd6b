import { randomBytes, randomUUID } from "node:crypto";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { StateDatabase } from "../../packages/agent/src/state/index.ts";
import { claimOfVerdict, falsehoods, type Statements } from "../support/endings/claims.ts";
import { killPoints, strikeBeforeCalls } from "../support/endings/kill-points.ts";
import { PlayedNode } from "../support/endings/played-node.ts";
import { acceptedEvictions, type Truth, truthOf } from "../support/endings/truth.ts";
import { podNamed, startEvictionPlugin } from "../support/eviction-plugin.ts";
import { fillUp } from "../support/full-database.ts";
import { isFull, sized } from "../support/sizes.ts";

// What the agent states about the end of a pod, for each way in which a pod ends and each point at which the agent can be
// killed, against what a recorder in front of the API server saw. A cell is who ended the pod, which the recorder must
// confirm; with "?" the agent lost evidence and may state that it does not know.
const table = `
           running beforeDecide decided sending responseLost accepted ended stopped stoppedAccepted flooded aged   clockStepped diskFull
evicted    ours    ours         ours    ours    ours?        ours     ours  ours    ours            ours    ours?  ours         ours
user       other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
drained    other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
controller other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
kubelet    other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
preempted  other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
tainted    other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
shutdown   other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
oom        ours    ours         ours    ours    ours?        ours     ours  ours    ours            ours    ours?  ours         ours
crash      other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
job        other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
recreated  other   other        other   other?  ours?        ours     ours  other   ours            other   other? other        other
`;

type KilledAt = keyof typeof killPoints;
type PointName = KilledAt | "flooded" | "aged" | "clockStepped" | "diskFull";
const [points, ...lines] = table
  .trim()
  .split("\n")
  .map((line) => line.trim().split(/ +/)) as [PointName[], ...string[][]];
const cells = new Map(lines.map(([ending, ...row]) => [ending!, row]));

const print = process.env.PRINT_CELLS === "1";
const stated = new Map<string, string>();
const pages: string[] = [];

afterAll(() => {
  if (!print) return;
  const rows = [...cells.keys()].map((ending) => [
    ending,
    ...points.map((point) => stated.get(`${point} ${ending}`) ?? "-"),
  ]);
  const text = [["", ...points], ...rows]
    .map((row) => row.map((cell) => cell.padEnd(16)).join(""))
    .join("\n");
  console.log(`${text}\n\n${pages.join("\n")}`);
});

const EIGHT_DAYS_MS = 8 * 86_400_000;
const THREE_YEARS_MS = 3 * 365 * 86_400_000;
const MANY = 900;

// All of them with npm run test:heavy.
const all = Object.keys(killPoints) as KilledAt[];
const run = sized<readonly KilledAt[]>(["running", "decided"], all);

describe.concurrent("what is stated about pods that ended in every way", () => {
  it.each(run)("with the agent at: %s", async (point) => {
    const node = await PlayedNode.start();
    try {
      await killPoints[point](node);
      await node.settle();
      expect(await wrongCells(point, node)).toEqual([]);
    } finally {
      await node.stop();
    }
  });
});

describe.runIf(isFull)("what is stated about pods that ended in every way", () => {
  let node: PlayedNode;
  beforeEach(async () => {
    node = await PlayedNode.start({ evictionRecordsMaxSize: "1Mi" });
  });
  afterEach(() => node.stop());

  it("with records that another plugin has flooded since: flooded", async () => {
    await node.startAgent();
    await strikeBeforeCalls(node);
    await node.settle();
    const flooder = await startEvictionPlugin(node.flags.pluginDirectories!, "flooder");
    flooder.evictPods = () => ({
      evictPods: Array.from({ length: MANY }, () => {
        const name = `${randomBytes(60).toString("hex")}`;
        return { pod: podNamed(name, randomUUID()), reason: `wants ${name}`, forceEvict: true };
      }),
    });
    const flooded = async () =>
      (await node.statements.rounds())
        .filter(({ refusals }) => refusals.unknownPod >= MANY)
        .map(({ id }) => id);
    const [first] = await until("the flood", async () => {
      const ids = await flooded();
      return ids.length > 0 && ids;
    });
    await until("records of the flood are trimmed", async () => !(await flooded()).includes(first));
    await flooder.stop();
    expect(await wrongCells("flooded", node)).toEqual([]);
  });

  it("with records older than is kept: aged", async () => {
    const clock = new SteppedClock();
    await node.startAgentHere(clock);
    await strikeBeforeCalls(node);
    await node.settle();
    clock.advance(EIGHT_DAYS_MS);
    await trim();
    expect(await wrongCells("aged", node)).toEqual([]);
  });

  it("after a step of the wall clock by three years: clockStepped", async () => {
    const clock = new SteppedClock();
    await node.startAgentHere(clock);
    await strikeBeforeCalls(node);
    await node.settle();
    clock.step(THREE_YEARS_MS);
    await trim();
    expect(await wrongCells("clockStepped", node)).toEqual([]);
  });

  it("while the disk was full: diskFull", async () => {
    const opened = vi.spyOn(StateDatabase, "open");
    await node.startAgentHere();
    const database = opened.mock.results.at(-1)!.value as StateDatabase;
    opened.mockRestore();
    await node.untilRounds(2);
    const makeSpace = fillUp(database);
    await strikeBeforeCalls(node);
    await until("our evictions", async () => {
      for (const pod of node.pods.values()) await node.others.finish(pod);
      return acceptedEvictions(node.recorder).length === 2;
    });
    await node.untilRounds(3);
    makeSpace();
    await node.settle();
    expect(await wrongCells("diskFull", node)).toEqual([]);
  });

  /** Lets a round be recorded, which trims older records. */
  async function trim(): Promise<void> {
    const { rounds } = node.plugin;
    node.wanted = [{ name: "nobody", uid: randomUUID() }];
    await until("a round", () => node.plugin.rounds > rounds, { explain: () => node.output() });
    await node.untilRounds(3);
  }
});

/** Judges all pods of a node. Returns what is wrong, as "point x ending: what". */
async function wrongCells(point: PointName, node: PlayedNode): Promise<string[]> {
  const wrong: string[] = [];
  const pods = [...cells.keys()].map((ending) => node.pods.get(ending)!);
  const [bystander, ...all] = await node.statements.about([node.bystander, ...pods]);
  for (const [at, [ending, row]] of [...cells].entries()) {
    const cell = row[points.indexOf(point)]!;
    const truth = truthOf(node.recorder, pods[at]!.uid);
    const said = all[at]!;
    note(point, ending, said);
    const expected = cell.replace("?", "") as Truth;
    const isLost = cell.endsWith("?");
    const found = falsehoods(said, truth, { response: isLost, records: isLost && point === "aged" });
    if (truth !== expected) found.push(`the test expects ${expected}, the recorder saw ${truth}`);
    if (found.length > 0) wrong.push(`${point} x ${ending}: ${found.join("; ")}. It says: ${said.verdict}`);
  }
  if (!bystander!.verdict.startsWith("Not evicted: no plugin requested it"))
    wrong.push(`${point} x bystander: ${bystander!.verdict}`);
  const evicted = acceptedEvictions(node.recorder);
  if (new Set(evicted).size < evicted.length) wrong.push(`${point}: evicted twice: ${evicted}`);
  wrong.push(...(await wrongCounts(point, node)).map((what) => `${point}: ${what}`));
  return wrong;
}

// The counters begin at the start of the agent: they must agree with the rounds since, and with the recorder if the agent
// ran all the time.
async function wrongCounts(
  point: PointName,
  { statements, startedAt, recorder, pods }: PlayedNode,
): Promise<string[]> {
  const wrong: string[] = [];
  const ended = await statements.counter("nodekeeper_eviction_ended_total", "outcome");
  const { asker: victims = 0 } = await statements.counter("nodekeeper_eviction_victims_total", "plugin");
  const compare = (what: string, count: number, others: string, expected: number) => {
    if (count !== expected) wrong.push(`metric: ${what} ${count}, ${others} ${expected}`);
  };
  // Rounds that are not kept can't be counted.
  if (point !== "aged") {
    const rounds = await statements.rounds(startedAt);
    const results: string[] = rounds.flatMap(({ outcomes }) => outcomes.map(({ result }: Outcome) => result));
    for (const outcome of new Set([...Object.keys(ended), ...results])) {
      const recorded = results.filter((one) => one === outcome).length;
      compare(`ended ${outcome}`, ended[outcome] ?? 0, "rounds have", recorded);
    }
    compare(
      "victims",
      victims,
      "rounds have",
      rounds.reduce((sum, round) => sum + round.victims.length, 0),
    );
  }
  if (isUninterrupted(point)) {
    const truths = [...pods.values()].map(({ uid }) => truthOf(recorder, uid));
    const ours = truths.filter((truth) => truth === "ours").length;
    compare("ended terminated", ended.terminated ?? 0, "the recorder saw", ours);
    compare("ended superseded", ended.superseded ?? 0, "the recorder saw", truths.length - ours);
  }
  return wrong;
}

type Outcome = { result: string };

function isUninterrupted(point: PointName): boolean {
  return !(point in killPoints) || point === "running";
}

function note(point: PointName, ending: string, { verdict, page }: Statements): void {
  stated.set(`${point} ${ending}`, claimOfVerdict(verdict));
  if (print) pages.push(`--- ${point} x ${ending}\n${page}`);
}
