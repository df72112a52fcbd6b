import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { timeOf } from "@nodekeeper/api/wording";
import { messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import {
  describeProblem,
  loadPolicies,
  type PolicyProblem,
  type PolicyTrial,
  readSceneFile,
  type Scene,
  type SceneFile,
  sceneOfFile,
  sceneOfRecord,
  tryPolicy,
} from "../policy/index.ts";
import { recordsOfFile } from "./eviction/record-source.ts";
import { type Output, type PageFormat, printAs } from "./output.ts";
import { trialPage } from "./policy-page.ts";

export interface PolicyTestOptions {
  /** Path of the policy file. */
  policies: string;
  /** Recorded rounds (`rounds --records`), or a YAML or JSON file of `node` and `pods`. */
  against: string;
  /** A file with `node` and `pods`: readings that recorded rounds do not contain. */
  readings: string | undefined;
  /** Number of most recent recorded rounds. */
  last: number;
  /** Id of the one recorded round to evaluate. */
  round: number | undefined;
  /** Whether to assume that thresholds were already met before. */
  underPressure: boolean;
  format: PageFormat;
}

/** The result of each policy for one scene. */
export interface SceneTrial {
  /** Null if the scene is not a recorded round. */
  round: number | null;
  /** Milliseconds since the epoch. */
  at: number;
  policies: PolicyTrial[];
}

/** Result of `policy test`, as printed with `-o json`. */
export interface PolicyTest {
  problems: PolicyProblem[];
  scenes: SceneTrial[];
}

/** `nodekeeper policy test`. Returns whether all policies of the file are valid. */
export async function policyTestCommand(
  options: PolicyTestOptions,
  output: Output,
  now: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { policies, problems } = await loadPolicies(options.policies, await read(options.policies));
  const test: PolicyTest = { problems, scenes: [] };
  for (const { round, scene } of await scenesOf(options, now)) {
    const trials: PolicyTrial[] = [];
    for (const policy of policies) trials.push(await tryPolicy(policy, scene, options.underPressure, signal));
    test.scenes.push({ round, at: scene.at, policies: trials });
  }
  printAs(output, options.format, test, () => page(test, output));
  return problems.length === 0;
}

interface NamedScene {
  round: number | null;
  scene: Scene;
}

async function scenesOf(options: PolicyTestOptions, now: number): Promise<NamedScene[]> {
  const { against, readings, last, round } = options;
  if (!(await holdsRecords(against))) {
    if (readings !== undefined || round !== undefined) {
      throw new NodekeeperError(
        "invalid",
        `--readings and --round need recorded rounds, but ${against} contains none`,
      );
    }
    return [{ round: null, scene: sceneOfFile(await readScene(against), now) }];
  }
  const known = readings === undefined ? undefined : await readScene(readings);
  const scenes: NamedScene[] = [];
  for await (const record of recordsOfFile(against)) {
    if (round !== undefined && record.id !== round) continue;
    scenes.push({ round: record.id, scene: sceneOfRecord(record, known) });
    if (scenes.length > last) scenes.shift();
  }
  if (scenes.length > 0) return scenes;
  throw new NodekeeperError(
    "notFound",
    round === undefined ? `${against} contains no rounds` : `${against} does not contain round ${round}`,
  );
}

// Records are JSON lines, one per round.
async function holdsRecords(path: string): Promise<boolean> {
  const input = createReadStream(path, "utf8");
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  try {
    for await (const line of lines) {
      if (line.trim() === "") continue;
      return /^\{\s*"id"\s*:\s*\d+\s*,/.test(line);
    }
    return false;
  } catch (error) {
    throw unreadable(path, error);
  } finally {
    lines.close();
    input.destroy();
  }
}

async function readScene(path: string): Promise<SceneFile> {
  return readSceneFile(path, await read(path));
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): NodekeeperError {
  return new NodekeeperError("invalid", `failed to read ${path}: ${messageOf(error)}`, { cause: error });
}

function page({ problems, scenes }: PolicyTest, output: Output): string {
  const refused = problems.map((problem) => `refused: ${describeProblem(problem)}\n`).join("");
  const pages = scenes.map(({ round, at, policies }) => {
    const heading = round === null ? "" : `Round ${round} at ${timeOf(at)}\n\n`;
    return heading + policies.map((trial) => trialPage(trial, output)).join("\n");
  });
  return [refused, ...pages].filter((part) => part !== "").join("\n");
}
