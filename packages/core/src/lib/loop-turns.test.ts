import { afterEach, describe, expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { LoopTurns } from "./loop-turns.ts";

let turn = 0;
let counting: NodeJS.Immediate;
const count = () => {
  turn++;
  counting = setImmediate(count);
};
afterEach(() => clearImmediate(counting));

const largest = (turns: readonly number[]) =>
  Math.max(...[...new Set(turns)].map((each) => turns.filter((other) => other === each).length));

describe("LoopTurns", () => {
  it("spreads pieces that come at once over turns of the event loop, in order", async () => {
    const turns = new LoopTurns(new FakeClock());
    count();
    const order: number[] = [];
    const doneIn = await Promise.all(
      Array.from({ length: 1_000 }, async (_, at) => {
        await turns.pass();
        order.push(at);
        return turn;
      }),
    );
    expect(order).toEqual(order.map((_, at) => at));
    expect(largest(doneIn)).toBeLessThanOrEqual(32);
  });

  it("ends a turn when its pieces take long", async () => {
    let now = 0;
    const turns = new LoopTurns(Object.assign(new FakeClock(), { monotonic: () => now }));
    count();
    const doneIn: number[] = [];
    for (let piece = 0; piece < 20; piece++) {
      await turns.pass();
      now += 3;
      doneIn.push(turn);
    }
    // Four pieces of 3 ms fill a turn of 10 ms.
    expect(largest(doneIn)).toBeLessThanOrEqual(4);
  });
});
