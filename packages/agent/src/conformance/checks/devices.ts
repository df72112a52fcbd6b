import { counted } from "@nodekeeper/api/wording";
import { type CheckedDevice, type CheckedPools, contractOf } from "../../devices/index.ts";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import { RuleBroken } from "../finding.ts";
import type { Watch } from "../watch.ts";
import { checkSame, FIRST_MESSAGE_MS } from "./same-state.ts";

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
      await checkSame(bench, bench.devices!, () => watchOf(bench), partsOf);
      bench.devices?.[Symbol.dispose]();
      using first = watchOf(bench);
      await checkSame(bench, first, () => watchOf(bench), partsOf);
      bench.devices = watchOf(bench);
      await bench.devices.after(0, FIRST_MESSAGE_MS);
      return undefined;
    },
  },
];

/** Opens the stream of devices. */
export function watchOf(bench: Bench): Watch<CheckedPools> {
  return bench.watchDevices(
    contractOf(bench.known.supportedVersions.filter((version) => !bench.unserved.has(version))) ?? "",
  );
}

function partsOf({ pools }: CheckedPools): Map<string, string> {
  return new Map(
    pools.flatMap(({ name, fields, devices, counterSets }): [string, string][] => [
      [`pool ${name}`, JSON.stringify([fields, counterSets.map(({ fingerprint }) => fingerprint).sort()])],
      ...devices.map((each): [string, string] => [`device ${name}/${each.name}`, contentOf(each)]),
    ]),
  );
}

function contentOf({ fingerprint, device: { taints = [] } }: CheckedDevice): string {
  return JSON.stringify([fingerprint, taints.map(({ key, value, effect }) => [key, value, effect])]);
}
