import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { operations } from "@nodekeeper/api/http";
import { answers } from "@nodekeeper/api/openapi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProgram, runCli } from "../packages/agent/src/cli/index.ts";
import { localAccess } from "../packages/agent/src/cli/local-access.ts";
import { runCommand } from "../packages/agent/src/cli/testing/run-command.ts";
import { type ServedRoutes, serveRoutes } from "../packages/agent/src/server/testing/serve-routes.ts";
import { hostileAnswer } from "./support/hostile-answer.ts";

// Forges a line, clears the screen, turns the text around, colours it by C1, rings, overwrites the line.
const HOSTILE = "evil\nforged row\r\u001b[2J\u202e\u2066gnp\u009b31m\u0007\u0085forged\u2028forged";
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not reach a terminal
const DANGEROUS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f]|^forged/m;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what the commands themselves send to a terminal
const OWN_COLOURS = /\u001b\[\d+m/g;
// As many as the schemas have alternatives.
const VARIANTS = 6;

/** What these print is of this process, of files that the caller names or of the API server, and comes from no agent. */
const withoutAgent = [
  "run",
  "dev",
  "policy test",
  "conformance driver",
  "config default",
  "config schema",
  "config validate",
  "preflight",
  "uninstall",
  "completion",
  "version",
];

const directory = mkdtempSync(join(tmpdir(), "nk-hostile-"));
const configuration = join(directory, "config.yaml");

/** Arguments and options that commands must have. */
const given: Readonly<Record<string, readonly string[]>> = {
  "explain pod": ["shop/cart"],
  replay: ["--config", configuration],
};

let agent: ServedRoutes;
let variant = 0;
/** How often each path was asked for by one command. */
const asked = new Map<string, number>();

beforeAll(async () => {
  const defaults = await runCommand((output) => runCli(["node", "nodekeeper", "config", "default"], output));
  writeFileSync(configuration, defaults.out);
  const routes = Object.keys(operations).map((path) => ({
    path,
    summary: path,
    handle: () => {
      asked.set(path, (asked.get(path) ?? 0) + 1);
      return answerOf(path);
    },
  }));
  agent = await serveRoutes(routes);
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await agent?.stop();
});

// Lists of which more is asked for end after their first page.
function answerOf(path: string): unknown {
  const { json } = answers[path as keyof typeof answers];
  const answer = hostileAnswer(json, HOSTILE, variant) as Record<string, unknown>;
  if (Array.isArray(answer)) return asked.get(path)! > 1 ? [] : answer;
  const { continue: _, next: __, ...page } = answer;
  if (asked.get(path)! > 1)
    for (const [name, value] of Object.entries(page)) if (Array.isArray(value)) page[name] = [];
  return "end" in page ? { ...page, end: true } : page;
}

type Command = ReturnType<typeof createProgram>;

function leaves(command: Command, path: readonly string[] = []): { name: string; command: Command }[] {
  if (command.commands.length === 0) return [{ name: path.join(" "), command }];
  return command.commands.flatMap((each) => leaves(each, [...path, each.name()]));
}

const context = {
  output: { write: () => {}, isTerminal: false, columns: 120 },
  fail: () => {},
  agents: localAccess,
};
const all = leaves(createProgram(context));
const tested = all.filter(({ name }) => !withoutAgent.includes(name));

it("each command that is left out exists", () => {
  expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(withoutAgent));
});

describe.each(tested.map(({ name, command }) => [name, command] as const))("%s", (name, command) => {
  const formats = command.options.find(({ long }) => long === "--output")?.argChoices ?? [];
  const forms = [
    [],
    ...formats.map((format) => ["-o", format]),
    ...command.options.flatMap(({ long }) => (long === "--records" ? [["--records"]] : [])),
    // What the answers name, as its name.
    ...(command.registeredArguments.length > 0 && !given[name] ? [[HOSTILE]] : []),
  ];
  it.each(forms.map((form) => [form.join(" "), form] as const))(
    "%j prints hostile texts of an agent escaped, each in its line",
    async (_, form) => {
      for (variant = 0; variant < VARIANTS; variant++) {
        asked.clear();
        const argv = ["node", "nodekeeper", ...name.split(" "), ...(given[name] ?? []), ...form];
        const isTerminal = variant % 2 === 1;
        const { out, stderr } = await runCommand((output) =>
          runCli([...argv, "--server", agent.address], { ...output, isTerminal }),
        );
        // Without our own colours.
        const printed = (out + stderr).replaceAll(OWN_COLOURS, "");
        expect(asked.size).toBeGreaterThan(0);
        expect(printed).not.toMatch(DANGEROUS);
        // A replay prints what it decides itself.
        if (name !== "replay") expect(printed).toContain("\\u001b[2J");
      }
    },
  );
});
