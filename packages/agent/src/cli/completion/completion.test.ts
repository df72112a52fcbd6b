import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { runCli } from "../index.ts";
import { runKubectlPlugin } from "../kubectl/program.ts";
import { completionScript, shells } from "./scripts.ts";

/** The candidates in place of the last word, and the directive. */
async function words(run: typeof runCli | typeof runKubectlPlugin, ...typed: string[]) {
  let out = "";
  const write = (text: string) => {
    out += text;
  };
  const output = { write, isTerminal: false, columns: 80 };
  expect(await run(["node", "x", "__complete", ...typed], output)).toBe(0);
  const lines = out.trimEnd().split("\n");
  return { words: lines.slice(0, -1).map((line) => line.split("\t")[0]), directive: lines.at(-1) };
}

const own = (...typed: string[]) => words(runCli, ...typed);
const plugin = (...typed: string[]) => words(runKubectlPlugin, ...typed);

describe("completion", () => {
  it.each([
    ["commands", ["e"], ["events", "explain"]],
    ["subcommands", ["explain", ""], ["pod", "node"]],
    ["options behind an option and its value", ["pods", "-n", "kube-system", "--wat"], ["--watch"]],
    ["options", ["rounds", "--rec"], ["--records"]],
    ["values of an option", ["plugins", "list", "-o", ""], ["table", "wide", "json", "yaml"]],
    ["values behind an equals sign", ["plugins", "list", "--output=j"], ["--output=json"]],
    ["values of an argument", ["completion", ""], [...shells]],
    ["nothing for a value that is free", ["rounds", "--since", ""], []],
  ])("offers %s", async (_, typed, expected) => {
    const found = await own(...typed);
    expect(found.words).toEqual(expect.arrayContaining(expected));
    if (typed.at(-1) !== "" || expected.length === 0) expect(found.words).toEqual(expected);
  });

  it("offers files only where one may stand", async () => {
    expect((await own("rounds", "--from", "")).directive).toBe(":0");
    expect((await own("policy", "test", "")).directive).toBe(":0");
    expect((await own("rounds", "--since", "")).directive).toBe(":4");
  });

  it("of the kubectl plugin has its own options, before and after the command", async () => {
    expect((await plugin("--cont")).words).toEqual(["--context"]);
    expect((await plugin("--context", "prod", "stat")).words).toEqual(["status"]);
    expect((await plugin("status", "worker-1", "--agent-n")).words).toEqual(["--agent-namespace"]);
    expect((await plugin("run")).words).toEqual([]);
  });

  it("is what the script of bash fills in", () => {
    const directory = mkdtempSync(join(tmpdir(), "nk-complete-"));
    const program = join(directory, "nodekeeper");
    writeFileSync(
      program,
      `#!/bin/sh\necho "$@" >> ${directory}/asked\nprintf 'json\\tan about\\nyaml\\n:4\\n'\n`,
    );
    chmodSync(program, 0o755);
    const script = `${completionScript("bash", "nodekeeper")}
COMP_WORDS=(nodekeeper plugins -o "") COMP_CWORD=3
_nodekeeper
printf '%s|' "\${COMPREPLY[@]}"; cat ${directory}/asked`;
    const env = { PATH: `${directory}:${process.env.PATH}` };
    expect(execFileSync("bash", ["-c", script], { env, encoding: "utf8" })).toBe(
      "json|yaml|__complete plugins -o \n",
    );
    rmSync(directory, { recursive: true });
  });

  it.each(shells)("prints a script that %s can read", async (shell) => {
    const isThere = spawnSync(shell, ["-c", "true"]).status === 0;
    const script = completionScript(shell, "kubectl-nodekeeper");
    expect(script).toContain("kubectl-nodekeeper __complete");
    if (isThere) expect(spawnSync(shell, ["-n"], { input: script })).toMatchObject({ status: 0 });
  });

  it("refuses a shell that it has no script for", async () => {
    const written = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    expect(await runCli(["node", "nodekeeper", "completion", "csh"])).toBe(2);
    written.mockRestore();
  });
});

describe("help", () => {
  /** What `--help` prints in 80 columns. */
  async function help(...command: string[]): Promise<string> {
    let out = "";
    const written = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      out += text;
      return true;
    });
    await runCli(["node", "nodekeeper", ...command, "--help"]);
    written.mockRestore();
    return out;
  }

  it("of run has its options by section, readable in 80 columns", async () => {
    const text = await help("run");
    const lines = text.split("\n");
    // Only a default value without a blank may be longer.
    for (const line of lines) expect(line.trim().includes(" ") ? line.length : 0).toBeLessThanOrEqual(80);
    const headings = lines.filter((line) => /^[a-z][A-Za-z.]*: /.test(line));
    expect(headings).toEqual(expect.arrayContaining([expect.stringMatching(/^reporting: /)]));
    expect(text).toMatch(/^ {2}--reporting-collect-interval <duration>\n {6}\S/m);
  });

  it("of the other commands fits as well", async () => {
    for (const command of [[], ["events"], ["pods"], ["explain", "pod"], ["rounds"], ["policy", "test"]]) {
      for (const line of (await help(...command)).split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    }
  });
});
