import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeCoffeeProject } from "./support/coffee-project.ts";
import { missingParts, pathOf } from "./support/parts.ts";

const execute = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** The SDKs' own tests: over real sockets, and with their test kits beside an agent in a development cluster. */
const environment = {
  ...process.env,
  PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}`,
  NODEKEEPER_AGENT: join(root, "packages/agent/src/main.ts"),
};

/** Returns what the command prints. Fails with it if the command fails. */
async function output(directory: string, env: Record<string, string>, ...words: string[]): Promise<string> {
  const [command, ...args] = words as [string, ...string[]];
  const options = { cwd: resolve(root, directory), env: { ...environment, ...env } };
  const { stdout, stderr } = await execute(command, args, options).catch((error) => {
    throw new Error(`${words.join(" ")} in ${directory}:\n${error.stdout}${error.stderr}`);
  });
  return stdout + stderr;
}

const missingGo = missingParts("goSampleDriver");

describe.skipIf(missingGo)(`the Go module${missingGo ? `: ${missingGo}` : ""}`, () => {
  // As test/e2e/prepare builds programs with the same packages: Go's cache has them.
  const env = { CGO_ENABLED: "0", GOFLAGS: "-trimpath", GOWORK: "off" };

  it.each(["sdk-go", "examples/driver-go", "examples/plugins-go", "examples/dra-example-driver"])(
    "%s is formatted and vetted",
    async (directory) => {
      expect(await output(directory, env, "gofmt", "-l", ".")).toBe("");
      await output(directory, env, "go", "vet", "./...");
    },
  );

  it("upstream's example driver, ported to it, has the devices and answers of upstream's", async () => {
    const printed = await output("examples/dra-example-driver", env, "go", "test", "-count=1", "-v", ".");
    expect(printed.match(/^--- PASS/gm)?.length).toBe(6);
    expect(printed).not.toContain("--- SKIP");
  });

  it("passes its tests", async () => {
    const printed = await output("sdk-go", env, "go", "test", "-count=1", "-v", ".", "./devcluster");
    expect(printed.match(/^--- PASS/gm)?.length).toBeGreaterThanOrEqual(13);
    expect(printed).not.toContain("--- SKIP");
  });
});

const missingPython = missingParts("pythonSampleDriver");

describe.skipIf(missingPython)(`the Python package${missingPython ? `: ${missingPython}` : ""}`, () => {
  it("passes its tests", async () => {
    const env = { PYTHONPATH: pathOf("pythonSampleDriver"), PYTHONDONTWRITEBYTECODE: "1" };
    const words = ["-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "tests", "-t", "."];
    const printed = await output("sdk-python", env, "python3", ...words);
    expect(printed).toMatch(/^Ran [12]\d tests/m);
    expect(printed).toMatch(/^OK$/m);
  });
});

/** The sample drivers. The health of one device changes while the suite runs. */
const samples = [
  { language: "Go", missing: missingGo, command: () => `${pathOf("goSampleDriver")} --interval 200ms` },
  {
    language: "Python",
    missing: missingPython,
    command: () => `python3 ${join(pathOf("pythonSampleDriver"), "main.py")} --interval 0.2`,
  },
];

it.for(samples)("the sample driver in $language keeps the contract", async (sample, { skip }) => {
  if (sample.missing) skip(sample.missing);
  const directory = mkdtempSync(join(tmpdir(), "nk-sample-"));
  try {
    const command = `${sample.command()} --socket-dir ${directory} --count 4`;
    const words = ["conformance", "driver", directory, "--command", command];
    const printed = await output(root, {}, "node", "packages/agent/src/main.ts", ...words);
    // It has no binding conditions, and no status to report.
    const skipped = [...printed.matchAll(/^skip {2}(\S+)/gm)].map(([, rule]) => rule);
    expect(skipped.sort()).toEqual(["allocations", "status"]);
    expect(printed).toMatch(/ passed, 0 failed, 2 skipped$/m);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

describe("docs/first-driver.md", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "nk-coffee-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it.for([
    { language: "go", missing: missingGo, ran: /^ok {2}\t/m },
    { language: "python", missing: missingPython, ran: /^Ran 2 tests/m },
  ] as const)("its driver in $language passes its test, which npm test runs", async (sample, { skip }) => {
    const { language, missing, ran } = sample;
    if (missing) skip(missing);
    const project = await writeCoffeeProject(language, join(directory, "coffee"));
    expect(await output(project.directory, project.env, "npm", "test")).toMatch(ran);
    if (project.scripts.check) await output(project.directory, project.env, "npm", "run", "check");
  });
});
