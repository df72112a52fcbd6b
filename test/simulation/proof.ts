import { buildWorld, removeWorld } from "./load.ts";
import type { Mutation } from "./mutations.ts";
import type { Counted } from "./report/tally.ts";
import { runWorlds, seedsFrom } from "./worker.ts";

/** Which worlds are tried for a mutation after the one that is known to find it. */
interface Search {
  from: number;
  seeds: number;
  /** Processes at a time. */
  jobs: number;
}

/**
 * Puts each mutation into the agent, and runs worlds until one breaks a rule that it keeps without the mutation. Prints
 * what was found. Returns false if a mutation that is known to be found was not.
 */
export async function prove(chosen: readonly Mutation[], { from, seeds, jobs }: Search): Promise<boolean> {
  const startedAt = performance.now();
  const sound = new SoundWorlds(await buildWorld());
  await sound.run(chosen.flatMap(({ seed }) => seed ?? []));
  const found = new Map<Mutation, number>();
  const waiting = [...chosen];
  await Promise.all(
    Array.from({ length: Math.min(jobs, chosen.length) }, async () => {
      for (let mutation = waiting.shift(); mutation; mutation = waiting.shift()) {
        const { name, promise, seed } = mutation;
        const tried = new Set([...(seed === undefined ? [] : [seed]), ...seedsFrom(from, seeds)]);
        const outcome = await firstBroken(mutation, sound, [...tried]);
        if (outcome) found.set(mutation, outcome.seed);
        const [first] = outcome?.broken ?? [];
        const verdict = first ? `seed ${outcome?.seed}: ${first.promise}` : "not found";
        console.log(`${name}: ${verdict}${first?.promise === promise ? "" : ` (expected: ${promise})`}`);
      }
    }),
  );
  sound.remove();
  const elsewhere = chosen.filter((mutation) => found.has(mutation) && found.get(mutation) !== mutation.seed);
  const missing = chosen.filter((mutation) => !found.has(mutation));
  console.log(
    [
      `${found.size} of ${chosen.length} mutations were found in ${Math.round((performance.now() - startedAt) / 1_000)} s`,
      `${found.size - elsewhere.length} at their seed`,
      `${elsewhere.length} elsewhere`,
      ...elsewhere.map((mutation) => `  ${mutation.name}: put seed: ${found.get(mutation)} into the table`),
      `${missing.length} not`,
      ...missing.map(({ name, unfound }) => `  ${name}${unfound === undefined ? "" : `: known, ${unfound}`}`),
    ].join("\n"),
  );
  return missing.every(({ unfound }) => unfound !== undefined);
}

/** Returns the first world that breaks a rule because of a mutation. */
async function firstBroken(
  mutation: Mutation,
  sound: SoundWorlds,
  seeds: readonly number[],
): Promise<Counted | undefined> {
  const bundle = await buildWorld([mutation]);
  let found: Counted | undefined;
  for (let left = seeds; left.length > 0 && !found; ) {
    let broken: Counted | undefined;
    await runWorlds({ bundle, seeds: left, isQuick: false }, (outcome) => {
      left = left.slice(1);
      if (outcome.broken.length > 0) broken = outcome;
      return broken !== undefined;
    });
    if (broken && (await sound.keepsRules(broken.seed))) found = broken;
  }
  removeWorld(bundle);
  return found;
}

/** Worlds of the agent as it is, each of which is run once. */
class SoundWorlds {
  readonly #bundle: string;
  readonly #keepsRules = new Map<number, boolean>();

  constructor(bundle: string) {
    this.#bundle = bundle;
  }

  /** Runs worlds in one process. */
  async run(seeds: readonly number[]): Promise<void> {
    await runWorlds({ bundle: this.#bundle, seeds: [...new Set(seeds)], isQuick: false }, (outcome) => {
      this.#keepsRules.set(outcome.seed, outcome.broken.length === 0);
      return false;
    });
  }

  async keepsRules(seed: number): Promise<boolean> {
    if (!this.#keepsRules.has(seed)) await this.run([seed]);
    return this.#keepsRules.get(seed) === true;
  }

  remove(): void {
    removeWorld(this.#bundle);
  }
}
