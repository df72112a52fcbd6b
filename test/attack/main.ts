// Attacks an agent, and measures what that does to it: npm run attack -- --help
import { readArguments } from "../../scripts/arguments.ts";
import { attacks, controls } from "./attacks/index.ts";
import { budgets, excesses } from "./budgets.ts";
import { measure, type Outcome } from "./measure.ts";
import { printHead, printRow } from "./table.ts";

const width = Math.max(...attacks.map(({ name }) => name.length));
const help = `usage: npm run attack -- [NAME...] [options]

Starts an agent for each attack, attacks it from another process, and prints the longest time until /livez was answered,
the longest turn of the event loop (CPU time of the main thread), and resident memory: before, at its highest, and 10 s
after the attack at the latest.

${attacks.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n")}

  --short        fewer attacks, each for 2 s, and budgets for a busy machine: for CI
  --seconds N    how long each attack lasts (default 8)
  --help

Exits with 1 if an attack exceeded a budget, 2 for arguments that make no sense.`;

const options = { short: { type: "boolean" }, seconds: { type: "string" } } as const;
const { names, isShort, seconds } = readArguments(
  help,
  { allowPositionals: true, options },
  ({ values, positionals }) => {
    const unknown = positionals.find((name) => !attacks.some((attack) => attack.name === name));
    if (unknown !== undefined) throw new Error(`no attack ${JSON.stringify(unknown)}`);
    const seconds = Number(values.seconds ?? (values.short ? 2 : 8));
    if (!(seconds > 0)) throw new Error("--seconds takes a number above 0");
    return { names: positionals, isShort: values.short === true, seconds };
  },
);
const chosen = attacks.filter((attack) =>
  names.length > 0 ? names.includes(attack.name) || controls.includes(attack) : !isShort || attack.isShort,
);
const { turnMs, livezMs, growthMb, keptMb } = budgets(isShort);
console.log(
  `budgets: turn ${turnMs} ms, /livez ${livezMs} ms, memory +${growthMb} MB, after the attack +${keptMb} MB; from idle`,
);
printHead(width);
let exceeded = 0;
const undisturbed = new Map<boolean, Outcome>();
for (const attack of chosen) {
  const fromStart = attack.server?.fromStart === true;
  const idle = undisturbed.get(fromStart);
  const enoughMb = idle && idle.rssMb + (isShort ? keptMb : 0);
  const outcome = await measure(attack, { attackMs: seconds * 1_000, enoughMb });
  if (controls.includes(attack)) undisturbed.set(fromStart, outcome);
  const broken = excesses(outcome, undisturbed.get(fromStart)!, budgets(isShort));
  exceeded += broken.length;
  printRow(width, attack.name, outcome, broken);
}
console.log(`${chosen.length} attacks, ${exceeded} budgets exceeded`);
process.exitCode = exceeded > 0 ? 1 : 0;
