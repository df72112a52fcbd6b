import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { countOf, pageFormatOption, signals } from "./options.ts";

/** `nodekeeper policy` */
export function declarePolicy(program: Command, { output, fail }: CommandContext): void {
  program
    .command("policy")
    .description("eviction policies in CEL")
    .command("test")
    .argument("<file>", "policy file (YAML)")
    .description(
      "evaluate policies against a node and its pods: thresholds met, eviction order, pods excluded and why",
    )
    .requiredOption(
      "--against <file>",
      "YAML or JSON file with `node` and `pods`, or output of `rounds --records`",
    )
    .option("--readings <file>", "file with `node` and `pods`: readings that recorded rounds do not contain")
    .option("--last <count>", "number of most recent recorded rounds to evaluate", "1")
    .option("--round <id>", "recorded round to evaluate")
    .option("--under-pressure", "assume the threshold was already met before", false)
    .addOption(pageFormatOption())
    .action(async (policies, { against, readings, last, round, underPressure, output: format }) => {
      const { policyTestCommand } = await import("../policy.ts");
      const rounds = { last: countOf(last, "--last"), round: round && countOf(round, "--round") };
      const options = { policies, against, readings, underPressure, format, ...rounds };
      using scope = await signals();
      if (!(await policyTestCommand(options, output, Date.now(), scope.signal))) fail();
    });
}
