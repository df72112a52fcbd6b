import { failing } from "../world/status.ts";
import type { World } from "../world/world.ts";
import { isInShare, SHARES } from "./endings.ts";
import { isExpected } from "./rest.ts";
import type { Rule } from "./rule.ts";

/** Something that stops working, and the check that is about it. */
interface FailingPart {
  check: string;
  /** Until the check must fail, milliseconds. */
  withinMs: number;
  /** Returns false if the world has nothing of the kind. */
  begin(world: World): boolean;
  end(world: World): void;
}

const parts: readonly FailingPart[] = [
  {
    check: "ConfigurationAccepted",
    withinMs: 30_000,
    begin({ machine, operator }) {
      machine.init.run(() => operator.mistake());
      return true;
    },
    end: ({ operator }) => operator.correct(),
  },
  {
    check: "EvictionPoliciesLoaded",
    withinMs: 30_000,
    begin({ machine, policies }) {
      if (!policies.file) return false;
      machine.init.run(() => policies.mistake());
      return true;
    },
    end: ({ policies }) => policies.correct(),
  },
  {
    check: "PodLifecycleReady",
    // lifecycle.unhealthyAfter, the period of relists, and the deadline of a call.
    withinMs: 180_000 + 30_000 + 10_000,
    begin({ runtime, history }) {
      // Evictions that stop containers would fail.
      if (runtime.stops) return false;
      history.addRuntimeOutage(this.withinMs);
      runtime.process.freeze();
      return true;
    },
    end: ({ runtime }) => runtime.process.thaw(),
  },
];

const RECOVERY_MS = 80_000;

export const failingParts: readonly Rule[] = [
  {
    promise: "The check of a part fails while it does not work, and recovers with it.",
    atRest: async (world) => {
      const { seed, machine } = world;
      const part = parts[Math.floor(seed / SHARES) % parts.length]!;
      const { check, withinMs } = part;
      if (!isInShare(world, 1) || !part.begin(world)) return [];
      await machine.scheduler.run(machine.scheduler.now + withinMs);
      const during = await failing(world);
      machine.init.run(() => part.end(world));
      await machine.scheduler.run(machine.scheduler.now + RECOVERY_MS);
      const after = (await failing(world)).filter((line) => !isExpected(line, world));
      return [
        ...(during.some((line) => line.includes(check))
          ? []
          : [`${check} does not fail after ${withinMs / 1_000} s: ${during.join("; ")}`]),
        ...after.map((line) => `${RECOVERY_MS / 1_000} s after it works again: ${line}`),
      ];
    },
  },
];
