import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Backoff, type BackoffOptions, delayAfter } from "./backoff.ts";
import { FakeClock } from "./fake-clock.ts";
import { retryPolicies } from "./retry.ts";
import { TokenBucket } from "./token-bucket.ts";

describe("Backoff", () => {
  it("grows from base by its factor to the maximum, and starts from base after a reset", () => {
    const backoff = new Backoff({ baseMs: 100, maxMs: 1_000, factor: 3, jitter: 0 });
    expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([100, 300, 900, 1_000, 1_000]);
    expect(backoff.failures).toBe(5);
    backoff.reset();
    expect([backoff.failures, backoff.next()]).toEqual([0, 100]);
  });

  it("has no delay at first with isFirstImmediate, and none again after a reset", () => {
    const backoff = new Backoff({ baseMs: 100, maxMs: 300, jitter: 0, isFirstImmediate: true });
    expect([1, 2, 3, 4].map(() => backoff.next())).toEqual([0, 100, 200, 300]);
    backoff.reset();
    expect([backoff.next(), backoff.next()]).toEqual([0, 100]);
    expect(new Backoff({ baseMs: 100, maxMs: 300, isFirstImmediate: true }).next(50)).toBe(50);
  });

  it("stays within its jitter, never above the maximum, whatever came before", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 100_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (failures, random) => {
          const options = { baseMs: 100, maxMs: 60_000, jitter: 0.2, random: () => random };
          const plain = Math.min(100 * 2 ** Math.min(failures, 64), 60_000);
          const delay = delayAfter(failures, options);
          expect(delay).toBeGreaterThanOrEqual(plain * 0.8);
          expect(delay).toBeLessThanOrEqual(Math.min(plain * 1.2, 60_000));
        },
      ),
    );
  });

  it("has no delay that many share, at the maximum too", () => {
    const delays = Array.from({ length: 200 }, () => delayAfter(9, { baseMs: 100, maxMs: 1_000 }));
    expect(new Set(delays).size).toBeGreaterThan(100);
  });

  it("spreads the delays of many over the jitter's width", () => {
    const delays = Array.from({ length: 200 }, () => delayAfter(0, { baseMs: 100, maxMs: 1_000 }));
    expect(Math.min(...delays)).toBeLessThan(90);
    expect(Math.max(...delays)).toBeGreaterThan(110);
  });
});

describe("what a fleet retries", () => {
  it("uses each delay twice, at first a random part of it, and the maximum ever after", () => {
    const options = { baseMs: 100, maxMs: 400, isOfFleet: true, random: () => 0.25 };
    const delays = Array.from({ length: 8 }, (_, failures) => delayAfter(failures, options));
    expect(delays).toEqual([25, 100, 50, 200, 100, 400, 400, 400]);
  });

  const policies = Object.entries(retryPolicies).filter(([, policy]) => "isOfFleet" in policy);

  it.each(policies)(
    "%s: 5,000 that failed at one moment come back at less than three times the mean rate",
    (_, policy) => {
      // In seconds. After shorter outages, all return within one or two seconds, too few for a rate.
      const outage = fc.double({ min: policy.baseMs / 1_000, max: 300, noNaN: true });
      fc.assert(
        fc.property(outage, (seconds) => {
          const arrivals = Array.from({ length: 5_000 }, () => firstTryAfter(seconds, policy) - seconds);
          expect(peakToMean(arrivals)).toBeLessThan(3);
        }),
        { numRuns: 5 },
      );
    },
  );
});

/** Returns when a client that failed at 0 makes its first attempt after the server's recovery, in seconds. */
function firstTryAfter(returnAt: number, policy: BackoffOptions): number {
  const backoff = new Backoff(policy);
  let at = 0;
  while (at < returnAt) at += backoff.next() / 1_000;
  return at;
}

/**
 * Returns the ratio of the peak rate (per second, or per thirtieth of the time) to the mean rate until the last
 * arrival. Arrivals are in seconds.
 */
function peakToMean(arrivals: readonly number[]): number {
  const last = Math.max(...arrivals);
  const width = Math.max(last / 30, 1);
  const counts = Array.from({ length: Math.floor(last / width) + 1 }, () => 0);
  for (const arrival of arrivals) counts[Math.floor(arrival / width)]!++;
  return (Math.max(...counts) * counts.length) / arrivals.length;
}

describe("TokenBucket", () => {
  it("gives its burst at once, then one by one", async () => {
    const clock = new FakeClock();
    const bucket = new TokenBucket(clock, { perSecond: 4, burst: 2 });
    const takeThree = () => [1, 2, 3].map(() => bucket.tryTake());
    expect(takeThree()).toEqual([true, true, false]);
    await clock.step(250);
    expect(takeThree()).toEqual([true, false, false]);
    await clock.step(60_000);
    expect(takeThree()).toEqual([true, true, false]);
  });

  it("never lets more through than its rate and burst", async () => {
    const waits = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(waits, async (pauses) => {
        const clock = new FakeClock();
        const bucket = new TokenBucket(clock, { perSecond: 10, burst: 3 });
        const times: number[] = [];
        for (const pause of pauses) {
          if (bucket.tryTake()) times.push(clock.monotonic());
          await clock.step(pause);
        }
        for (const [first, from] of times.entries()) {
          const within = times.slice(first).filter((time) => time < from + 1_000 - 1e-6).length;
          expect(within).toBeLessThanOrEqual(13);
        }
      }),
      { numRuns: 30 },
    );
  });
});
