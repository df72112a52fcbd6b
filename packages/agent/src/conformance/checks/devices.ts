import { counted } from "@nodekeeper/api/wording";
import { type CheckedPools, contractOf } from "../../devices/index.ts";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import { RuleBroken } from "../finding.ts";
import type { Watch } from "../watch.ts";

const FIRST_MESSAGE_MS = 10_000;
const MOST_SHOWN = 3;

export const deviceChecks: readonly Check[] = [
  {
    rule: "first-message",
    needs: ["versions"],
    async run(bench) {
      bench.devices = watchOf(bench);
      const { value } = await bench.devices.after(0, FIRST_MESSAGE_MS);
      bench.pools = value;
      const devices = value.pools.reduce((sum, pool) => sum + pool.devices.length, 0);
      return `${counted(value.pools.length, "pool")}, ${counted(devices + value.quarantined, "device")}`;
    },
  },
  {
    rule: "valid-devices",
    needs: ["first-message"],
    async run({ pools }) {
      const problems = pools?.problems ?? [];
      if (problems.length === 0) return undefined;
      const shown = problems.slice(0, MOST_SHOWN).map(({ pool, device, field, message }) => {
        const where = [pool, device, field].filter((part) => part !== undefined && part !== "").join(" ");
        return `${where}: ${message}`;
      });
      const others = problems.length - shown.length;
      throw new RuleBroken(`${shown.join("; ")}${others > 0 ? `; ${others} more` : ""}`);
    },
  },
  {
    rule: "whole-state-again",
    needs: ["first-message"],
    async run(bench) {
      await checkSame(bench, bench.devices!);
      bench.devices?.[Symbol.dispose]();
      using first = watchOf(bench);
      await checkSame(bench, first);
      bench.devices = watchOf(bench);
      await bench.devices.after(0, FIRST_MESSAGE_MS);
      return undefined;
    },
  },
];

function watchOf(bench: Bench): Watch<CheckedPools> {
  return bench.watchDevices(
    contractOf(bench.known.supportedVersions.filter((version) => !bench.unserved.has(version))) ?? "",
  );
}

// Devices may come and go meanwhile: differences count if they last.
async function checkSame(bench: Bench, known: Watch<CheckedPools>): Promise<void> {
  using second = watchOf(bench);
  const until = bench.clock.monotonic() + FIRST_MESSAGE_MS;
  let [one, other] = [await known.after(0, FIRST_MESSAGE_MS), await second.after(0, FIRST_MESSAGE_MS)];
  for (;;) {
    const difference = differenceOf(one.value, other.value);
    if (difference === undefined) return;
    try {
      const ms = until - bench.clock.monotonic();
      await Promise.any([known.after(one.number, ms), second.after(other.number, ms)]);
    } catch {
      throw new RuleBroken(difference);
    }
    [one, other] = [await known.after(0, 0), await second.after(0, 0)];
  }
}

function differenceOf(one: CheckedPools, other: CheckedPools): string | undefined {
  const [first, second] = [one, other].map((pools) => new Set(namesOf(pools)));
  const missing = [...first!].find((name) => !second!.has(name));
  if (missing !== undefined) return `the second stream lacks ${missing}`;
  const added = [...second!].find((name) => !first!.has(name));
  return added === undefined ? undefined : `the second stream has ${added}, which the first lacks`;
}

function namesOf({ pools }: CheckedPools): string[] {
  return pools.flatMap(({ name, devices }) => [
    `pool ${name}`,
    ...devices.map((device) => `device ${name}/${device.name}`),
  ]);
}
