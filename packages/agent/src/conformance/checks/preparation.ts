import { counted } from "@nodekeeper/api/wording";
import type { PrepareDevicesRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { codeOf, quote } from "@nodekeeper/core/lib";
import { checkAnswer, differenceOf } from "../answer-check.ts";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import { claimOf } from "../claims.ts";
import { RuleBroken } from "../finding.ts";

const MOST_OVERLAPPING = 8;
// Before the driver has read the request, and while it prepares.
const CANCEL_AFTER_MS = [0, 1, 3, 10];
const GOAL_MS = 1_000;

export const preparationChecks: readonly Check[] = [
  {
    rule: "prepare",
    needs: ["first-message", "versions"],
    async run(bench) {
      bench.preparation;
      const claim = claimOfOne(bench);
      await bench.preparation.prepare(claim);
      await bench.preparation.unprepare(claim).catch(() => {});
      return undefined;
    },
  },
  {
    rule: "answer",
    needs: ["prepare"],
    async run(bench) {
      const claim = claimOfOne(bench);
      const answer = await bench.preparation.prepare(claim);
      // Unpreparing has a rule of its own.
      await bench.preparation.unprepare(claim).catch(() => {});
      await checkAnswer(bench.known.name, claim, answer);
      return undefined;
    },
  },
  {
    rule: "unprepare",
    needs: ["prepare"],
    async run(bench) {
      const claim = claimOfOne(bench);
      await bench.preparation.prepare(claim);
      await bench.preparation.unprepare(claim);
      bench.canPrepare = true;
      return undefined;
    },
  },
  {
    rule: "prepare-again",
    needs: ["answer", "unprepare"],
    async run(bench) {
      const claim = claimOfOne(bench);
      const first = await bench.preparation.prepare(claim);
      const second = await bench.preparation.prepare(claim);
      await bench.preparation.unprepare(claim);
      const difference = differenceOf(first, second);
      if (difference !== undefined) throw new RuleBroken(difference);
      return undefined;
    },
  },
  {
    rule: "unprepare-again",
    needs: ["unprepare"],
    async run(bench) {
      const claim = claimOfOne(bench);
      await bench.preparation.prepare(claim);
      await bench.preparation.unprepare(claim);
      await bench.preparation.unprepare(claim);
      return undefined;
    },
  },
  {
    rule: "unprepare-unknown",
    needs: ["unprepare"],
    async run(bench) {
      await bench.preparation.unprepare(claimOfOne(bench));
      await bench.preparation.unprepare({ ...claimOf([]), pods: [] });
      return undefined;
    },
  },
  {
    rule: "prepare-after-unprepare",
    needs: ["answer", "unprepare"],
    async run(bench) {
      const claim = claimOfOne(bench);
      await bench.preparation.prepare(claim);
      await bench.preparation.unprepare(claim);
      await prepareAndUndo(bench, claim);
      return undefined;
    },
  },
  {
    rule: "restore-claims",
    needs: ["unprepare"],
    async run(bench) {
      bench.checkIsOwn();
      const claim = claimOfOne(bench);
      await bench.preparation.prepare(claim);
      bench.reconnect();
      const again = await bench.preparation.restore([claim]).catch((error) => {
        if (codeOf(error) === "unsupported") return undefined;
        throw error;
      });
      await bench.preparation.unprepare(claim);
      if (!again) return "not implemented: the driver confirms all claims";
      const unknown = again.find((uid) => uid !== claim.claim?.uid);
      if (unknown !== undefined) throw new RuleBroken(`${quote(unknown)} is not a claim of the request`);
      return again.length === 0 ? "confirmed" : "to be prepared again";
    },
  },
  {
    rule: "overlapping",
    needs: ["answer", "unprepare"],
    async run(bench) {
      bench.preparation;
      const devices = bench.streamed(2).slice(0, MOST_OVERLAPPING);
      const claims = devices.map((device) => claimOf([bench.allocated(device)]));
      const ended = await Promise.allSettled(claims.map((claim) => prepareAndUndo(bench, claim)));
      const failed = ended.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
      return counted(claims.length, "claim");
    },
  },
  {
    rule: "cancelled",
    needs: ["answer", "unprepare"],
    async run(bench) {
      for (const ms of CANCEL_AFTER_MS) {
        const claim = claimOfOne(bench);
        await bench.preparation.cancelPrepare(claim, ms);
        await prepareAndUndo(bench, claim);
      }
      return undefined;
    },
  },
  {
    rule: "prepare-time",
    needs: ["answer", "unprepare"],
    async run(bench) {
      const { clock, options } = bench;
      const times: number[] = [];
      for (let call = 0; call < options.calls; call++) {
        const claim = claimOfOne(bench, call);
        const startedAt = clock.monotonic();
        await bench.preparation.prepare(claim);
        times.push(clock.monotonic() - startedAt);
        await bench.preparation.unprepare(claim);
      }
      times.sort((a, b) => a - b);
      const [p50, p99] = [0.5, 0.99].map((part) => times[Math.ceil(part * times.length) - 1] ?? 0);
      const goal = p99! > GOAL_MS ? `, above the goal of ${GOAL_MS} ms` : "";
      return `${times.length} calls: p50 ${shown(p50!)} ms, p99 ${shown(p99!)} ms${goal}`;
    },
  },
];

/** Returns a new claim of one streamed device. */
export function claimOfOne(bench: Bench, number = 0): PrepareDevicesRequest {
  const devices = bench.streamed();
  return claimOf([bench.allocated(devices[number % devices.length]!)]);
}

/** Prepares a claim, checks the answer, and unprepares the claim. */
export async function prepareAndUndo(bench: Bench, claim: PrepareDevicesRequest): Promise<void> {
  const answer = await bench.preparation.prepare(claim);
  await bench.preparation.unprepare(claim);
  await checkAnswer(bench.known.name, claim, answer);
}

function shown(ms: number): string {
  return ms.toFixed(ms < 10 ? 1 : 0);
}
