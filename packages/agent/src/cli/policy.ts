import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
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
import { type Output, printJson } from "./output.ts";
import { trialPage } from "./policy-page.ts";

export interface PolicyTestOptions {
  /** The file of policies. */
  policies: string;
  /** Recorded rounds (`rounds --records`), or a YAML or JSON file of `node` and `pods`. */
  against: string;
  /** A file of `node` and `pods` that tells what recorded rounds do not hold. */
  readings: string | undefined;
  /** How many of the last recorded rounds. */
  last: number;
  /** One recorded round alone. */
  round: number | undefined;
  /** As though there had been pressure before. */
  underPressure: boolean;
  format: "text" | "json";
}

/** One scene, and what each policy says of it. */
export interface SceneTrial {
  /** Null where it is no recorded round. */
  round: number | null;
  /** Milliseconds since the epoch. */
  at: number;
  policies: PolicyTrial[];
}

/** All that `policy test` found; what it prints with `-o json`. */
export interface PolicyTest {
  problems: PolicyProblem[];
  scenes: SceneTrial[];
}

/** `nodekeeper policy test`. Answers whether all policies of the file are right. */
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
  if (options.format === "json") printJson(output, test, 2);
  else output.write(page(test, output));
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
        `--readings and --round go with recorded rounds; ${against} holds none`,
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
  throw new NodekeeperError("notFound", `${against} holds no round${round === undefined ? "" : ` ${round}`}`);
}

// Records are lines of JSON, each a whole round.
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
  return new NodekeeperError("invalid", `${path} can't be read: ${messageOf(error)}`, { cause: error });
}

function page({ problems, scenes }: PolicyTest, output: Output): string {
  const refused = problems.map((problem) => `refused: ${describeProblem(problem)}\n`).join("");
  const pages = scenes.map(({ round, at, policies }) => {
    const heading = round === null ? "" : `Round ${round} at ${new Date(at).toISOString()}\n\n`;
    return heading + policies.map((trial) => trialPage(trial, output)).join("\n");
  });
  return [refused, ...pages].filter((part) => part !== "").join("\n");
}
