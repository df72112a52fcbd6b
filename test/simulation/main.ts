// The whole agent in worlds of virtual time: npm run simulate -- --help
import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildWorld, loadWorld, removeWorld } from "./load.ts";
import { type Mutation, mutations } from "./mutations.ts";
import { summaryOf } from "./report/summary.ts";
import { timelineOf } from "./report/timeline.ts";
import { shrink } from "./shrink.ts";
import type { Outcome } from "./simulate.ts";

const help = `usage: npm run simulate -- [--seed N | --seeds N [--from N] | --mutations [NAME]] [options]

Runs the agent, as createAgent composes it, in a world that one seed determines: an API server, a container runtime, a
kubelet, plugins, an operator, and faults of all of them, on virtual time. Judges it by the rules in
test/simulation/rules.

  --seed N      runs one world; if it breaks a rule, prints the rule, the last events before it and the whole trace
  --shrink      with --seed: looks for a smaller world with the same finding
  --mutations   puts each defect of test/simulation/mutations.ts, or those with NAME in their name, into the agent, and
                runs worlds until one breaks a rule
  --seeds N     runs N worlds (default 100; with --mutations, at most N for each of them, default 500)
  --from N      first of them (default 1)
  --jobs N      processes at a time (default: the number of CPUs)
  --help

Exits with 1 if a rule was broken or a mutation that is known to be found was not, with 2 for arguments that make no sense.`;

const PER_PROCESS = 25;

const options = readArguments();
if (options.worker) await work(options.worker, options.from, options.seeds);
else if (options.mutations) await prove(options.mutations, options.from, options.seeds, options.jobs);
else if (options.seed !== undefined) await one(options.seed, options.shrink);
else await many(options.from, options.seeds, options.jobs);

async function one(seed: number, isShrinking: boolean): Promise<void> {
  const bundle = await buildWorld();
  const { simulate } = await loadWorld(bundle);
  removeWorld(bundle);
  let outcome = await simulate(seed);
  if (isShrinking && outcome.broken.length > 0)
    outcome = await shrink(simulate, outcome, (line) => console.log(line));
  // The process would end before a pipe has taken a long text.
  process.stdout.write(`${timelineOf(outcome)}\n`, () => process.exit(outcome.broken.length > 0 ? 1 : 0));
}

async function many(from: number, seeds: number, jobs: number): Promise<void> {
  const bundle = await buildWorld();
  const startedAt = performance.now();
  const outcomes: Outcome[] = [];
  let next = from;
  const last = from + seeds - 1;
  await Promise.all(
    Array.from({ length: Math.min(jobs, seeds) }, async () => {
      while (next <= last) {
        const first = next;
        next += Math.min(PER_PROCESS, last - next + 1);
        await worker(bundle, first, next - first, (outcome) => {
          outcomes.push(outcome);
          for (const { promise, what } of outcome.broken)
            console.log(`seed ${outcome.seed}: ${promise} ${what}`);
          return false;
        });
      }
    }),
  );
  removeWorld(bundle);
  console.log(summaryOf(outcomes, performance.now() - startedAt));
  process.exit(outcomes.length < seeds || outcomes.some(({ broken }) => broken.length > 0) ? 1 : 0);
}

async function prove(chosen: readonly Mutation[], from: number, seeds: number, jobs: number): Promise<void> {
  const sound = await buildWorld();
  const waiting = [...chosen];
  let [found, missed] = [0, 0];
  await Promise.all(
    Array.from({ length: Math.min(jobs, chosen.length) }, async () => {
      for (let mutation = waiting.shift(); mutation; mutation = waiting.shift()) {
        const { name, promise } = mutation;
        const mutated = await buildWorld([mutation]);
        const outcome = await difference(mutated, sound, from, seeds);
        removeWorld(mutated);
        if (outcome) found++;
        else if (mutation.unfound === undefined) missed++;
        const [first] = outcome?.broken ?? [];
        const verdict = first ? `seed ${outcome?.seed}: ${first.promise}` : `not found in ${seeds} seeds`;
        console.log(`${name}: ${verdict}${first?.promise === promise ? "" : ` (expected: ${promise})`}`);
      }
    }),
  );
  removeWorld(sound);
  console.log(`${found} of ${chosen.length} mutations were found`);
  process.exit(missed > 0 ? 1 : 0);
}

/** Returns the first world that breaks a rule because of a mutation: without it, no rule is broken. */
async function difference(
  mutated: string,
  sound: string,
  from: number,
  seeds: number,
): Promise<Outcome | undefined> {
  for (let next = from; next < from + seeds; ) {
    const mutants: Outcome[] = [];
    await worker(mutated, next, Math.min(PER_PROCESS, from + seeds - next), (outcome) => {
      mutants.push(outcome);
      return outcome.broken.length > 0;
    });
    const last = mutants.at(-1)!;
    next = last.seed + 1;
    if (last.broken.length === 0) continue;
    const others: Outcome[] = [];
    await worker(sound, last.seed, 1, (outcome) => others.push(outcome) > 0);
    if (others.every(({ broken }) => broken.length === 0)) return last;
  }
  return undefined;
}

/**
 * Runs some worlds in a process of their own: what a world leaves behind in memory ends with it.
 * @param isEnough called with each outcome; ends the process if it returns true
 */
function worker(
  bundle: string,
  from: number,
  seeds: number,
  isEnough: (outcome: Outcome) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), [
      `--worker=${bundle}`,
      `--from=${from}`,
      `--seeds=${seeds}`,
    ]);
    child.on("message", (message) => {
      if (!child.killed && isEnough(message as Outcome)) child.kill();
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 || child.killed
        ? resolve()
        : reject(new Error(`the process of seeds from ${from} on exited with ${code}`)),
    );
  });
}

async function work(bundle: string, from: number, seeds: number): Promise<void> {
  const { simulate } = await loadWorld(bundle);
  for (let seed = from; seed < from + seeds; seed++) {
    const { events: _events, log: _log, ...outcome } = await simulate(seed);
    process.send!(outcome);
  }
  process.exit(0);
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        seed: { type: "string" },
        seeds: { type: "string" },
        mutations: { type: "boolean", default: false },
        from: { type: "string", default: "1" },
        jobs: { type: "string", default: String(availableParallelism()) },
        shrink: { type: "boolean", default: false },
        // The bundle, in the processes of `many`.
        worker: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
    if (values.help) {
      console.log(help);
      process.exit(0);
    }
    if (positionals.length > (values.mutations ? 1 : 0))
      throw new Error(`unexpected argument: ${positionals.at(-1)}`);
    const [wanted = ""] = positionals;
    const chosen = values.mutations ? mutations.filter(({ name }) => name.includes(wanted)) : undefined;
    if (chosen?.length === 0) throw new Error(`no mutation has "${wanted}" in its name`);
    values.seeds ??= chosen ? "500" : "100";
    const number = (name: "seed" | "seeds" | "from" | "jobs", least: number) => {
      const value = Number(values[name]);
      if (!Number.isSafeInteger(value) || value < least)
        throw new Error(`--${name} must be a whole number of at least ${least}, got "${values[name]}"`);
      return value;
    };
    return {
      seed: values.seed === undefined ? undefined : number("seed", 0),
      seeds: number("seeds", 1),
      from: number("from", 0),
      jobs: number("jobs", 1),
      mutations: chosen,
      shrink: values.shrink,
      worker: values.worker,
    };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help}`);
    process.exit(2);
  }
}
