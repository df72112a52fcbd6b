import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { createProgram } from "../packages/agent/src/cli/index.ts";
import { localAccess } from "../packages/agent/src/cli/local-access.ts";
import { standardOutput } from "../packages/agent/src/cli/output.ts";
import { manPageOf } from "../scripts/man-page.ts";
import { findProgram } from "../scripts/programs.ts";

const program = () => createProgram({ output: standardOutput, fail() {}, agents: localAccess });

it("has every command and option of the program", () => {
  const page = manPageOf(program(), "1.2.3");
  expect(page).toMatch(/^\.TH NODEKEEPER 1 "" "nodekeeper 1\.2\.3"/);
  for (const command of program().commands) expect(page).toContain(`.SS nodekeeper ${command.name()}`);
  expect(page).toContain(".B \\-\\-kube\\-api\\-qps <number>");
});

it("escapes what roff would read", () => {
  const page = manPageOf(program().createCommand("x").description("y").option("-a", ".b \\c 'd"), "1");
  expect(page).toContain(".B \\-a\n\\&.b \\ec 'd\n");
});

it.skipIf(!findProgram("groff"))("is understood by groff", () => {
  const { status, stdout, stderr } = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-rLL=80n"], {
    input: manPageOf(program(), "1.2.3"),
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("0 done, 1 failed, 2 wrong usage or configuration.");
});
