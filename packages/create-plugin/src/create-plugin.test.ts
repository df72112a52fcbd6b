import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, matchesGlob } from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { defaultName, parseArguments } from "./arguments.ts";
import { writeProject } from "./project.ts";
import { completeArguments } from "./questions.ts";
import { nextSteps } from "./readme.ts";
import { kinds, languages, sampleNames } from "./templates.ts";

const root = join(import.meta.dirname, "../../..");
const source = { root, version: "1.2.3" };
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-create-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A terminal into which one line is typed per question. Without lines, not a terminal. */
function terminal(...lines: string[]) {
  const input = Object.assign(new PassThrough(), { isTTY: lines.length > 0 });
  const output = new PassThrough();
  output.on("data", (text) => {
    const line = String(text).endsWith("]: ") ? lines.shift() : undefined;
    if (line !== undefined) input.write(`${line}\n`);
  });
  return { input, output };
}

describe("arguments", () => {
  it.each([
    [["--kind", "sensor"], '--kind must be one of reporter, eviction, driver; got "sensor"'],
    [["--language", "rust"], '--language must be one of typescript, go, python; got "rust"'],
    [["a", "b"], "one directory at most; got a, b"],
    [["--colour", "red"], "Unknown option '--colour'"],
    [["--name"], "'--name <value>' argument missing"],
  ])("%j are refused by name", (args, message) => {
    expect(() => parseArguments(args)).toThrow(message);
  });

  it.each([
    [["--language", "go", "x"], "--kind reporter|eviction|driver is missing"],
    [["--kind", "driver", "x"], "--language typescript|go|python is missing"],
    [["--kind", "driver", "--language", "go"], "directory is missing"],
    [["--kind", "driver", "--language", "go", "My Driver"], 'name "My Driver.example.com"'],
    [["--kind", "reporter", "--language", "go", "x", "--name", "x".repeat(64)], "at most 63"],
  ])("%j without a terminal are refused", async (args, message) => {
    await expect(completeArguments(parseArguments(args), terminal())).rejects.toThrow(message);
  });

  it("need no terminal when they are complete; the name follows the directory", async () => {
    const complete = (...args: string[]) => completeArguments(parseArguments(args), terminal());
    expect(await complete("--kind", "driver", "--language", "go", "a/coffee")).toEqual({
      kind: "driver",
      language: "go",
      directory: "a/coffee",
      name: "coffee.example.com",
    });
    expect(await complete("--kind", "eviction", "--language", "go", "a/coffee")).toMatchObject({
      name: "coffee",
    });
  });

  it.each([".", "./", "a/.."])("take the present directory as %j by its name", (present) => {
    expect(defaultName(present, "reporter")).toBe(basename(process.cwd()));
    expect(defaultName(present, "driver")).toBe(`${basename(process.cwd())}.example.com`);
  });

  it("are asked for on a terminal, again after what is not one of the choices", async () => {
    const args = parseArguments([]);
    expect(await completeArguments(args, terminal("4", "driver", "3", "", "tea.example.org"))).toEqual({
      kind: "driver",
      language: "python",
      directory: "my-driver",
      name: "tea.example.org",
    });
  });
});

it("questions end without a project when the terminal is closed", async () => {
  const { input, output } = terminal("1");
  const choosing = completeArguments(parseArguments([]), { input, output });
  output.on("data", (text) => {
    if (String(text).startsWith("language")) input.end();
  });
  await expect(choosing).rejects.toThrow("no answer: nothing was created");
});

describe("the next steps", () => {
  const stepsFor = (where: string) =>
    nextSteps({ directory: where, kind: "reporter", language: "go", name: "tea" });

  it.each([
    ["tea", "cd tea"],
    ["../a/tea-1.0", "cd ../a/tea-1.0"],
    ["/srv/tea", "cd /srv/tea"],
    ["my tea", "cd 'my tea'"],
    ["it's $HOME; tea", "cd 'it'\\''s $HOME; tea'"],
    ["~/tea", "cd '~/tea'"],
    ["-tea", "cd './-tea'"],
    ["thé", "cd 'thé'"],
  ])("begin in the directory %j as a shell reads it", (where, step) => {
    expect(stepsFor(where)[0]).toBe(step);
  });

  it("stay in the present directory", () => {
    const [, ...rest] = stepsFor("tea");
    for (const present of [".", "./", process.cwd()]) expect(stepsFor(present)).toEqual(rest);
  });

  it("reach the directory, whatever is in its name", async () => {
    const name = "a $(touch no) `touch no` 'b' \"c\" & d";
    mkdirSync(join(directory, name));
    const script = `${stepsFor(name)[0]} && pwd`;
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", script], { cwd: directory });
    expect(basename(stdout.trimEnd())).toBe(name);
    expect(readdirSync(directory)).toEqual([name]);
  });
});

describe("a project", () => {
  it.each(languages.flatMap((language) => kinds.map((kind) => ({ language, kind }))))(
    "of a $kind in $language has the plugin's name, and no sample's",
    async ({ language, kind }) => {
      const project = join(directory, "new");
      await writeProject({ language, kind, name: "tea.example.org", directory: project }, source);
      const main = readdirSync(project).find((name) => name.startsWith("main."))!;
      const text = readFileSync(join(project, main), "utf8");
      expect(text).toContain("tea.example.org");
      expect(text).not.toContain(sampleNames[kind]);
      const manifest = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
      expect(manifest).toMatchObject({
        name: "tea.example.org",
        type: "module",
        devDependencies: { "@nodekeeper/testing": "^1.2.3", nodekeeper: "^1.2.3" },
      });
      for (const file of ["README.md", ".gitignore", "plugin.test.mjs", "start-plugin.mjs"])
        expect(existsSync(join(project, file)), file).toBe(true);
    },
  );

  it.each(languages.flatMap((language) => kinds.map((kind) => ({ language, kind }))))(
    "of a $kind in $language runs as a DaemonSet without permissions",
    async ({ language, kind }) => {
      const project = join(directory, "new");
      await writeProject({ language, kind, name: "tea.example.org", directory: project }, source);
      const manifest = readFileSync(join(project, "deploy/daemonset.yaml"), "utf8");
      const [account, daemonSet] = parseAllDocuments(manifest).map((document) => document.toJS());
      expect(account).toMatchObject({
        kind: "ServiceAccount",
        metadata: { name: "tea.example.org" },
        automountServiceAccountToken: false,
      });
      const { selector, updateStrategy, template } = daemonSet.spec;
      expect(template.metadata.labels).toEqual(selector.matchLabels);
      // Each instance has its own socket.
      expect(updateStrategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
      const { containers, volumes, ...pod } = template.spec;
      expect(pod).toMatchObject({
        serviceAccountName: "tea.example.org",
        automountServiceAccountToken: false,
      });
      expect(containers[0].securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      // The default of --socket-dir.
      const main = readFileSync(
        join(project, readdirSync(project).find((name) => /^main\./.test(name))!),
        "utf8",
      );
      const { path } = volumes[0].hostPath;
      expect(main).toContain(`"${path}"`);
      expect(containers[0].volumeMounts).toEqual([{ name: volumes[0].name, mountPath: path }]);
    },
  );

  it.each(["2024", "true", "1e3", "null"])(
    "with the name %s has manifests in which that is text",
    async (name) => {
      const project = join(directory, "new");
      await writeProject({ language: "go", kind: "reporter", name, directory: project }, source);
      const manifest = readFileSync(join(project, "deploy/daemonset.yaml"), "utf8");
      const [account, daemonSet] = parseAllDocuments(manifest).map((document) => document.toJS());
      const { selector, template } = daemonSet.spec;
      const labels = { "app.kubernetes.io/name": name };
      expect(account.metadata).toEqual({ name });
      expect(daemonSet.metadata).toEqual({ name, labels });
      expect([selector.matchLabels, template.metadata.labels]).toEqual([labels, labels]);
      expect(template.spec.serviceAccountName).toBe(name);
      expect(template.spec.containers[0].image).toBe(`${name}:0.1.0`);
    },
  );

  it.each(languages.flatMap((language) => kinds.map((kind) => ({ language, kind }))))(
    "of a $kind in $language builds its image from files that it has and that are not ignored",
    async ({ language, kind }) => {
      const project = join(directory, "new");
      await writeProject({ language, kind, name: "tea", directory: project }, source);
      const [everything, ...included] = readFileSync(join(project, ".dockerignore"), "utf8")
        .trim()
        .split("\n");
      expect(everything).toBe("*");
      const context = readdirSync(project).filter((name) =>
        included.some((pattern) => matchesGlob(name, pattern.slice(1))),
      );
      const dockerfile = readFileSync(join(project, "Dockerfile"), "utf8");
      for (const [, files] of dockerfile.matchAll(/^COPY (?!--)(.*) \S+$/gm)) {
        for (const file of files!.split(" ").filter((name) => name !== "."))
          expect(
            context.some((name) => matchesGlob(name, file)),
            file,
          ).toBe(true);
      }
      const main = readdirSync(project).find((name) => name.startsWith("main."))!;
      expect(context).toContain(main);
      for (const name of ["plugin.test.mjs", "README.md", "deploy"]) expect(context).not.toContain(name);
      const { version: image } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
      expect(readFileSync(join(project, "deploy/daemonset.yaml"), "utf8")).toContain(`image: tea:${image}\n`);
    },
  );

  it.each([
    ["go", "sdk-go", "driver.go", /^replace .* => \.\/sdk-go$/m, "go.mod"],
    ["python", "sdk-python", "nodekeeper_sdk/driver.py", /^\.\/sdk-python$/m, "requirements.txt"],
  ] as const)("in %s has the SDK, without its tests", async (language, sdk, file, wanted, required) => {
    const project = join(directory, "new");
    await writeProject({ language, kind: "driver", name: "tea", directory: project }, source);
    expect(readFileSync(join(project, required), "utf8")).toMatch(wanted);
    const files = readdirSync(join(project, sdk), { recursive: true, encoding: "utf8" });
    expect(files).toContain(file);
    expect(files.filter((name) => /test_|_test\.|pycache|README|generate|buf\./.test(name))).toEqual([]);
  });

  // Each stands for its language's tool: it succeeds, or as Python 3.12 exits with 5, if there are no tests.
  it.each([
    ["go", "bin/go", "main_test.go", '[ "$*" = "test ." ] && ! [ -e main_test.go ]'],
    [
      "python",
      ".venv/bin/python",
      "test_main.py",
      '[ "$*" = "-m unittest" ] && [ ! -e test_main.py ] && exit 5',
    ],
  ] as const)(
    "in %s runs the tests in its language, if there are any",
    async (language, tool, file, script) => {
      const project = join(directory, "new");
      await writeProject({ language, kind: "driver", name: "tea", directory: project }, source);
      rmSync(join(project, "plugin.test.mjs"));
      mkdirSync(dirname(join(project, tool)), { recursive: true });
      writeFileSync(join(project, tool), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      const { scripts } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
      const env = { ...process.env, PATH: `${join(project, "bin")}:${process.env.PATH}` };
      const test = async () => await promisify(execFile)("sh", ["-c", scripts.test], { cwd: project, env });
      await test();
      writeFileSync(join(project, file), "");
      await expect(test()).rejects.toThrow("Command failed");
    },
  );

  it("is tested by the actions that test this repository", async () => {
    const project = join(directory, "new");
    await writeProject({ language: "go", kind: "driver", name: "tea", directory: project }, source);
    const ours = readFileSync(join(root, ".github/workflows/ci.yml"), "utf8");
    const theirs = readFileSync(join(project, ".github/workflows/ci.yml"), "utf8");
    const used = [...theirs.matchAll(/uses: .*/g)].map(([line]) => line);
    expect(used).toHaveLength(3);
    for (const line of used) expect(ours).toContain(line);
    const { scripts } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
    for (const [, name] of theirs.matchAll(/npm (?:run )?(build|check|test)$/gm))
      expect(scripts).toHaveProperty(name!);
  });

  it("is not written where files are, or where the directory is a file", async () => {
    const choices = { language: "go", kind: "driver", name: "x" } as const;
    writeFileSync(join(directory, "precious"), "");
    await expect(writeProject({ ...choices, directory }, source)).rejects.toThrow(
      "is not empty (precious): nothing is overwritten",
    );
    await expect(
      writeProject({ ...choices, directory: join(directory, "precious") }, source),
    ).rejects.toThrow("precious can't be used");
    expect(readdirSync(directory)).toEqual(["precious"]);
  });

  it("is written into an empty directory that exists", async () => {
    mkdirSync(join(directory, "empty"));
    await writeProject(
      { language: "go", kind: "driver", name: "x", directory: join(directory, "empty") },
      source,
    );
    expect(readdirSync(join(directory, "empty"))).toContain("go.mod");
  });
});
