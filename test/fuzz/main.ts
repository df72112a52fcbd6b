// Feeds what others send to the agent's readers, nearly right and wrong: npm run fuzz -- --help
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments } from "../../scripts/arguments.ts";
import { fuzz, tryInput } from "./fuzz.ts";
import { targets } from "./targets/index.ts";

const width = Math.max(...targets.map(({ name }) => name.length));
const help = `usage: npm run fuzz -- <target>|all [options]

Makes inputs of the right structure, changes them, and looks whether a reader keeps its rules. An input that breaks one
is made as small as can be, and written to a file; put that file into test/fuzz/cases/<target>/ with the fix.

${targets.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n")}

  --seconds N    how long each target is tried (default 20)
  --seed N       the same inputs again (default: random, printed)
  --path P       with --seed: the input of an earlier finding alone
  --input FILE   this input alone
  --help

Exits with 1 after a finding, 2 for arguments that make no sense.`;

const options = {
  seconds: { type: "string", default: "20" },
  seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
  path: { type: "string" },
  input: { type: "string" },
} as const;
const { name, seconds, seed, path, inputFile } = readArguments(
  help,
  { allowPositionals: true, options },
  ({ values, positionals: [name = ""] }) => {
    const names = [...targets.map((target) => target.name), "all"];
    if (!names.includes(name))
      throw new Error(`no target ${JSON.stringify(name)}; there are: ${names.join(", ")}`);
    const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
    if (!(seconds > 0) || !Number.isInteger(seed))
      throw new Error("--seconds takes a number above 0, --seed a whole number");
    return { name, seconds, seed, path: values.path, inputFile: values.input };
  },
);
const chosen = targets.filter((target) => name === "all" || target.name === name);
let findings = 0;
let inputs = 0;
for (const target of chosen) {
  try {
    if (inputFile) {
      await tryInput(target, readFileSync(inputFile));
      console.log(`${target.name}: ${inputFile} keeps the rules`);
      inputs++;
      continue;
    }
    const outcome = await fuzz(target, { seconds, seed, path });
    inputs += outcome.inputs;
    const { finding } = outcome;
    console.log(
      `${target.name.padEnd(width)}  ${outcome.inputs} inputs, seed ${seed}: ${finding ? "FINDING" : "no finding"}`,
    );
    if (!finding) continue;
    findings++;
    const file = join(tmpdir(), `fuzz-${target.name}-${seed}.input`);
    writeFileSync(file, finding.input);
    console.log(finding.error);
    console.log(
      `input: ${file}, ${finding.input.length} bytes: ${JSON.stringify(Buffer.from(finding.input.subarray(0, 400)).toString("latin1"))}`,
    );
    console.log(`again: npm run fuzz -- ${target.name} --seed ${seed} --path ${finding.path}`);
  } finally {
    await target.close?.();
  }
}
console.log(`${inputs} inputs, ${findings} findings`);
process.exitCode = findings > 0 ? 1 : 0;
