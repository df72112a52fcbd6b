import { describe, expect, it } from "vitest";
import { seededRandom } from "../../packages/testing/src/runtime/seeded-random.ts";
import { KilledNode } from "../support/endings/killed-node.ts";
import { isFull } from "../support/sizes.ts";

// SIGKILL at random steps of the agent, with slow, failing and lying plugins, an API server that fails and loses responses,
// and other clients that end pods. After that every eviction has an outcome on record, no pod was evicted twice or unnamed,
// and every explanation is true by what a recorder in front of the API server saw. The nodes run beside each other.
const kills = Number(process.env.EVICTION_KILLS ?? 40);
// As many as vitest runs beside each other.
const nodes = Math.min(5, Math.ceil(kills / 10));
// Another one in each run, in CI the same one each time.
const anySeed = process.env.CI ? 1 : Math.floor(Math.random() * 2 ** 31);
const seed = Number(process.env.EVICTION_KILLS_SEED ?? anySeed);
// Too long for `npm test`.
const isWanted = isFull || process.env.EVICTION_KILLS !== undefined;

describe.runIf(isWanted).concurrent(`${kills} kills, EVICTION_KILLS_SEED=${seed}`, () => {
  it.each(Array.from({ length: nodes }, (_, at) => at))(
    "of node %d leave every outcome recorded",
    async (at) => {
      const node = await KilledNode.start(seededRandom(seed + at));
      try {
        const { wrong, ...report } = await node.run(Math.ceil(kills / nodes));
        console.log(`seed ${seed}, node ${at}: ${JSON.stringify(report)}, ${wrong.length} wrong`);
        expect(wrong).toEqual([]);
      } finally {
        await node.stop();
      }
    },
    600_000 + kills * 20_000,
  );
});
