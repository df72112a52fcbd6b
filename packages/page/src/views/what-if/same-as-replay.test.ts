import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { evictionPolicyOf } from "@nodekeeper/api/decide";
import { defaultConfiguration } from "@nodekeeper/api/settings";
import { afterEach, beforeEach, expect, it } from "vitest";
import { liveEvictionPolicy } from "../../../../agent/src/assembly/testing/defaults.ts";
import { runCli } from "../../../../agent/src/cli/index.ts";
import {
  evictPod,
  type TestPlugin,
  TestRounds,
  testPod,
} from "../../../../agent/src/eviction/testing/rounds.ts";
import { type ServedRecords, serveRecords } from "../../../../agent/src/server/testing/serve-records.ts";
import { ask } from "../../api.ts";
import { applyTexts } from "./fields.ts";
import type { FromWorker, ReplayResult } from "./messages.ts";
import { ReplaySession } from "./session.ts";
import { snippetOf } from "./yaml.ts";

// The page's replay and `nodekeeper replay`, both of the same agent's records: an agent's routes over HTTP, on SQLite.
let served: ServedRecords;

beforeEach(async () => {
  served = await serveRecords();
});

afterEach(() => served.stop());

/** Plays some rounds with the default policy, of which other policies decide several differently. */
function playRounds(): void {
  const rounds = new TestRounds(
    [
      testPod("web", {
        labels: { "example.com/keep": "" },
        owner: { kind: "ReplicaSet", name: "rs", uid: "rs" },
      }),
      testPod("web-2", { owner: { kind: "ReplicaSet", name: "rs", uid: "rs" } }),
      testPod("db", { priority: 10 }),
      testPod("agent", { owner: { kind: "DaemonSet", name: "ds", uid: "ds" } }),
    ],
    liveEvictionPolicy,
  );
  const plugins: Record<string, TestPlugin>[] = [
    { pressure: { threshold: { metType: "hard" }, top: ["web"] } },
    { soft: { pods: [evictPod("web-2"), evictPod("db")] } },
    {
      force: {
        pods: ["db", "web-2"].map((name) => evictPod(name, { force: true, gracePeriodSeconds: 600 })),
      },
    },
    { daemons: { threshold: { metType: "hard" }, top: ["agent"] } },
  ];
  for (const [at, answers] of plugins.entries()) {
    rounds.now = Date.now() - 60_000 + at * 10_000;
    served.play(rounds, answers);
  }
}

/** What the page has for these changes of the default configuration, and the file to make it so. */
async function replayInPage(texts: Record<string, string>) {
  const edited = applyTexts(defaultConfiguration(), new Map(Object.entries(texts)));
  expect(edited.problems).toEqual(new Map());
  const results: ReplayResult[] = [];
  const session = new ReplaySession({
    readPage: (since, after, signal) =>
      ask("eviction/records", { since, after, limit: 2 }, signal, `http://${served.address}/`),
    post: (message: FromWorker) => message.kind === "result" && results.push(structuredClone(message.result)),
    pause: async () => {},
    now: () => 0,
  });
  await session.take({ kind: "replay", run: 1, policy: evictionPolicyOf(edited) });
  await session.take({ kind: "read", since: Date.now() - 3_600_000 });
  return { result: results.at(-1)!, snippet: snippetOf(edited.changed) };
}

async function replayByCommand(snippet: string): Promise<unknown> {
  const file = join(served.directory, "candidate.yaml");
  writeFileSync(file, `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n${snippet}`);
  let out = "";
  const write = (text: string) => {
    out += text;
  };
  const output = { write, isTerminal: false, columns: 120 };
  const args = ["replay", "--config", file, "--server", served.address, "-o", "json"];
  expect(await runCli(["node", "nodekeeper", ...args], output)).toBe(0);
  return JSON.parse(out);
}

it.each<[Record<string, string>, object]>([
  [{ dryRunPlugins: "" }, { victimsBefore: 3, victimsAfter: 3, dryRunAfter: 0, differing: [] }],
  [{}, { victimsAfter: 0, dryRunAfter: 3 }],
  [{ dryRunPlugins: "", burst: "1", "limits.perOwner": "1", "grace.longest": "1m" }, {}],
  [
    {
      dryRunPlugins: "",
      "skip.labels": "example.com/keep",
      "skip.daemonSets": "false",
      taintPrefix: "example.com",
    },
    {},
  ],
])("%j: the page and the command have the same result", async (texts, expected) => {
  playRounds();
  const { result, snippet } = await replayInPage(texts);
  const { replay, policy, malformed } = result;
  expect(malformed).toEqual([]);
  expect(replay).toMatchObject({ rounds: 4, ...expected });
  if (policy.length > 0) expect(replay.differing.length).toBeGreaterThan(0);
  expect(await replayByCommand(snippet)).toEqual(JSON.parse(JSON.stringify({ ...replay, policy })));
});
