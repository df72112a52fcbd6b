import { publishedOf } from "./acts.ts";
import { isInShare } from "./endings.ts";
import type { Rule } from "./rule.ts";

// The agent learns that a plugin is gone, and then writes what is due.
const UNTIL_WRITTEN_MS = 6_000;

export const withdrawal: readonly Rule[] = [
  {
    promise:
      "What is published of a reporter that is uninstalled is withdrawn after the grace period, and not before.",
    atRest: async (world) => {
      const { machine, reporters, reporterGraceMs, history } = world;
      const isSpoilt = world.plugins.some(({ isLying }) => isLying);
      const reporter = reporters.find(({ value, isRegistered }) => value !== undefined && isRegistered);
      if (!isInShare(world, 0) || isSpoilt || !reporter) return [];
      const isPublished = () => publishedOf(world.api, reporter.name) !== undefined;
      if (!isPublished()) return [];
      const { lives } = history;
      reporter.uninstall();
      const removedAt = machine.scheduler.now;
      await machine.scheduler.run(removedAt + reporterGraceMs - 1_000);
      const isKept = isPublished();
      await machine.scheduler.run(removedAt + reporterGraceMs + UNTIL_WRITTEN_MS);
      // An agent that was started meanwhile has a grace period of its own.
      if (lives.some(({ startedAt }) => startedAt >= removedAt)) return [];
      return [
        ...(isKept ? [] : [`${reporter.name} was withdrawn before ${reporterGraceMs} ms`]),
        ...(isPublished() ? [`${reporter.name} is still published`] : []),
      ];
    },
  },
];
