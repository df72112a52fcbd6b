import { buildWorld, removeWorld } from "./load.ts";
import type { Mutation } from "./mutations/index.ts";
import { runWorlds, seedsFrom } from "./worker.ts";

/** Which worlds are tried for a mutation after the one that is known to find it. */
interface Search {
  from: number;
  seeds: number;
  /** Processes at a time. */
  jobs: number;
}

/**
 * Applies each mutation to the agent, and runs worlds until one breaks the mutation's promise but no rule without the
 * mutation. Prints the results and the seeds to put into the table. Returns whether all mutations were found.
 */
export async function prove(chosen: readonly Mutation[], { from, seeds, jobs }: Search): Promise<boolean> {
  const startedAt = performance.now();
  const sound = new SoundWorlds(await buildWorld());
  await sound.run(
    chosen.map(({ seed }) => seed),
    jobs,
  );
  const found = new Map<Mutation, number>();
  const waiting = [...chosen];
  await Promise.all(
    Array.from({ length: Math.min(jobs, chosen.length) }, async () => {
      for (let mutation = waiting.shift(); mutation; mutation = waiting.shift()) {
        const { name, promise, seed } = mutation;
        const by = await findingSeed(mutation, sound, [...new Set([seed, ...seedsFrom(from, seeds)])]);
        if (by !== undefined) found.set(mutation, by);
        console.log(`${name}: ${by === undefined ? "not found" : `seed ${by}`}: ${promise}`);
      }
    }),
  );
  sound.remove();
  console.log(summary(chosen, found, performance.now() - startedAt));
  return found.size === chosen.length;
}

/** @param found the seed of the world that found each mutation */
function summary(chosen: readonly Mutation[], found: ReadonlyMap<Mutation, number>, tookMs: number): string {
  const missing = chosen.filter((mutation) => !found.has(mutation));
  const moved = [...found].filter(([{ seed: known }, seed]) => seed !== known);
  return [
    `${found.size} of ${chosen.length} mutations were found in ${Math.round(tookMs / 1_000)} s: ` +
      `${found.size - moved.length} at their seed, ${moved.length} elsewhere`,
    ...moved.map(
      ([{ name, seed: known }, seed]) => `put into the table: seed: ${seed} instead of ${known}, ${name}`,
    ),
    ...missing.map(({ name }) => `not found: ${name}`),
  ].join("\n");
}

/**
 * Returns the first seed whose world breaks the mutation's promise, but no rule without the mutation. Violations of
 * other rules and crashes do not count. Undefined if there is no such seed.
 */
async function findingSeed(
  mutation: Mutation,
  sound: SoundWorlds,
  seeds: readonly number[],
): Promise<number | undefined> {
  const bundle = await buildWorld([mutation]);
  let found: number | undefined;
  for (let left = seeds; left.length > 0 && found === undefined; ) {
    let broken: number | undefined;
    await runWorlds({ bundle, seeds: left, isQuick: false }, ({ seed, broken: all }) => {
      left = left.slice(1);
      if (all.some(({ promise }) => promise === mutation.promise)) broken = seed;
      return broken !== undefined;
    });
    if (broken !== undefined && (await sound.keepsRules(broken))) found = broken;
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

  /** Runs worlds in so many processes: the first worlds of a process take three times as long. */
  async run(seeds: readonly number[], jobs: number): Promise<void> {
    const all = [...new Set(seeds)];
    const shares = Array.from({ length: jobs }, (_, job) => all.filter((_seed, at) => at % jobs === job));
    await Promise.all(
      shares.map((share) =>
        runWorlds({ bundle: this.#bundle, seeds: share, isQuick: false }, ({ seed, broken }) => {
          this.#keepsRules.set(seed, broken.length === 0);
          return false;
        }),
      ),
    );
  }

  async keepsRules(seed: number): Promise<boolean> {
    if (!this.#keepsRules.has(seed)) await this.run([seed], 1);
    return this.#keepsRules.get(seed) === true;
  }

  remove(): void {
    removeWorld(this.#bundle);
  }
}
