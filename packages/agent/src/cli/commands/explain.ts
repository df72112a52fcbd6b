import type { Command } from "commander";
import { sourceLines, withSource } from "../answer-source.ts";
import { printAs } from "../output.ts";
import type { CommandContext } from "./context.ts";
import { optionsWithNode, pageFormatOption } from "./options.ts";

/** `explain` */
export function declareExplain(program: Command, { output, agents }: CommandContext): void {
  const explain = program
    .command("explain")
    .argument("[id]", "id of an error, such as NK1603: print what it means and what to do")
    .addOption(pageFormatOption())
    .description("explain why a pod was evicted or the node tainted, or what an error means")
    .action(async (id, options) => {
      if (id === undefined) explain.help({ error: true });
      const { explainErrorCommand } = await import("../error-section.ts");
      explainErrorCommand(id, options.output, output);
    });
  const pod = explain
    .command("pod")
    .argument(
      "<pod>",
      "[NAMESPACE/]NAME or UID; if several pods had this name, the newest that was deleted or requested",
    )
    .description("explain why a pod left the node or was not evicted: the plugin, the ranking, each step");
  agents
    .addPodOptions(agents.addRecordOptions(pod))
    .addOption(pageFormatOption())
    .action(async (text, _, command) => {
      const options = command.optsWithGlobals();
      const { answer, source } = await agents.explainPod(options, text);
      const { explanationPage } = await import("../eviction/explanation-page.ts");
      printAs(output, options.output, withSource({ answer, source }), () =>
        explanationPage(answer, output, sourceLines(source)),
      );
    });

  const node = explain
    .command("node")
    .description("explain the conditions and taints set by eviction: plugin, reason, start and end");
  agents
    .addNodeArgument(agents.addRecordOptions(node))
    .addOption(pageFormatOption())
    .action(async (...given) => {
      const options = optionsWithNode(given.at(-1));
      const { answer, source } = await agents.explainNode(options);
      const { archivedNodePage, nodePage } = await import("../eviction/node-page.ts");
      const lines = sourceLines(source);
      printAs(output, options.output, withSource({ answer, source }), () =>
        "lastAt" in answer ? archivedNodePage(answer, output, lines) : nodePage(answer, output, lines),
      );
    });
}
