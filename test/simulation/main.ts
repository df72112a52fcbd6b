// The whole agent in worlds of virtual time: npm run simulate -- --help
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { buildWorld, loadWorld, removeWorld } from "./load.ts";
import { mutations } from "./mutations/index.ts";
import { prove } from "./proof.ts";
import { Coverage } from "./report/coverage.ts";
import { type Counted, Tally } from "./report/tally.ts";
import { timelineOf } from "./report/timeline.ts";
import { shrink } from "./shrink.ts";
import { runWorlds, seedsFrom, work } from "./worker.ts";

const help = `usage: npm run simulate -- [--seed N | --seeds N [--from N] | --mutations [NAME]] [options]

Runs the agent, as createAgent composes it, in a world that one seed determines: an API server, a container runtime, a
kubelet, plugins, an operator, and faults of all of them, on virtual time. Judges it by the rules in
test/simulation/rules.

  --seed N      runs one world; if it breaks a rule, prints the rule, the last events before it and the whole trace
  --shrink      with --seed: looks for a smaller world with the same finding
  --mutations   puts each defect of test/simulation/mutations, or those with NAME in their name, into the agent, and
                runs the world that is known to break a rule by it, and then others until one does
  --seeds N     runs N worlds (default 100; with --mutations, at most N others for each of them, default 500)
  --from N      first of them (default 1)
  --quick       small worlds with short storms that end with their calm: half the time, and fewer findings
  --coverage    with --seeds: which branches of the agent the worlds ran, by module
  --jobs N      processes at a time (default: the number of CPUs)
  --help

Exits with 1 if a rule was broken or a mutation was not found, with 2 for arguments that make no sense.`;

// The first worlds of a process take three times as long, until their code is compiled.
const PER_PROCESS = 500;
const PROGRESS_MS = 60_000;
// 128 + SIGINT, as in shells.
const INTERRUPTED = 130;

const options = readArguments();
if (options.worker) await work(options.worker);
else if (options.mutations) process.exit((await prove(options.mutations, options)) ? 0 : 1);
else if (options.seed !== undefined) await one(options.seed, options.shrink, options.isQuick);
else await many(options);

async function one(seed: number, isShrinking: boolean, isQuick: boolean): Promise<void> {
  const bundle = await buildWorld();
  const loaded = await loadWorld(bundle);
  removeWorld(bundle);
  const simulate: typeof loaded.simulate = (same, changes) => loaded.simulate(same, { isQuick, ...changes });
  let outcome = await simulate(seed);
  if (isShrinking && outcome.broken.length > 0)
    outcome = await shrink(simulate, outcome, (line) => console.log(line));
  // The process would end before a pipe has taken a long text.
  process.stdout.write(`${timelineOf(outcome)}\n`, () => process.exit(outcome.broken.length > 0 ? 1 : 0));
}

async function many({ from, seeds, jobs, isQuick, coverage: isCovered }: typeof options): Promise<void> {
  const bundle = await buildWorld();
  const coverage = isCovered ? new Coverage(bundle) : undefined;
  const tally = new Tally();
  const startedAt = performance.now();
  const took = () => performance.now() - startedAt;
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  console.log(`seeds ${from} to ${from + seeds - 1}`);
  const progress = setInterval(() => console.log(tally.progress(seeds, took())), PROGRESS_MS);
  const count = (outcome: Counted) => {
    tally.add(outcome);
    for (const { promise, what } of outcome.broken) console.log(`seed ${outcome.seed}: ${promise} ${what}`);
    return false;
  };
  const perProcess = Math.min(PER_PROCESS, Math.ceil(seeds / jobs));
  let next = from;
  const end = from + seeds;
  await Promise.all(
    Array.from({ length: Math.min(jobs, seeds) }, async () => {
      while (next < end && !stop.signal.aborted) {
        const first = next;
        next = Math.min(next + perProcess, end);
        const worlds = { bundle, seeds: seedsFrom(first, next - first), isQuick };
        await runWorlds(worlds, count, stop.signal, coverage);
      }
    }),
  );
  clearInterval(progress);
  removeWorld(bundle);
  if (stop.signal.aborted) console.log(`interrupted after ${tally.worlds} of ${seeds} worlds`);
  console.log([...(coverage ? [coverage.table()] : []), tally.summary(took())].join("\n"));
  process.exit(tally.failed > 0 ? 1 : stop.signal.aborted ? INTERRUPTED : 0);
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
        quick: { type: "boolean", default: false },
        coverage: { type: "boolean", default: false },
        // In the processes that run worlds: which ones.
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
      isQuick: values.quick,
      coverage: values.coverage,
      worker: values.worker,
    };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help}`);
    process.exit(2);
  }
}
