import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { runCommand } from "./testing/run-command.ts";
import { UninstallReport } from "./uninstall-report.ts";

it.each(["text", "json"] as const)(
  "prints its progress every 10 s to standard error, as %s",
  async (format) => {
    const clock = new FakeClock();
    const names = ["a", "b", "c", "d", "e"];
    const { out, stderr } = await runCommand(async (output) => {
      const { signal } = new AbortController();
      const report = new UninstallReport({ names, isDryRun: false, format, run: { output, clock, signal } });
      for (const [node, ms] of [
        ["a", 9_000],
        ["b", 1_000],
        ["c", 9_999],
        ["d", 1],
      ] as const) {
        await clock.step(ms);
        report.add({ node, removed: [] });
      }
      return report.finish() ? 0 : 1;
    });
    expect(stderr).toBe("nodekeeper: 2 of 5 nodes done\nnodekeeper: 4 of 5 nodes done\n");
    expect(out).not.toContain("done");
  },
);
