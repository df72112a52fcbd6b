// docs/commands.md: what the declarations of the commands have.
import { createProgram } from "../packages/agent/src/cli/index.ts";
import { ClusterAccess } from "../packages/agent/src/cli/kubectl/access.ts";
import { createKubectlProgram } from "../packages/agent/src/cli/kubectl/program.ts";
import { localAccess } from "../packages/agent/src/cli/local-access.ts";
import { standardOutput } from "../packages/agent/src/cli/output.ts";

/** Where the page is. */
export const COMMANDS_PAGE = "docs/commands.md";

type Command = ReturnType<typeof createProgram>;
type Option = Command["options"][number];

const head = `# Commands

<!-- Generated from the declarations of the commands by "npm run generate". -->

\`nodekeeper\` runs on the node, \`kubectl nodekeeper\` on an operator's machine: [kubectl-plugin.md](kubectl-plugin.md). Both
exit with 0; with 1 where something failed; with 2 for wrong usage or configuration. Times are in UTC, as
\`2026-11-22T10:04:57.819Z\`. The settings of the agent, which \`run\`, \`preflight\` and \`config validate\` take as options, are in
[configuration.md](configuration.md).
`;

/** The text of the page. */
export function commandsPage(): string {
  const rest = { output: standardOutput, fail: () => {} };
  const own = createProgram({ ...rest, agents: localAccess });
  const plugin = createKubectlProgram({ ...rest, agents: new ClusterAccess({}) });
  const shared = new Set(leavesOf(plugin).map((command) => pathOf(command).slice(1).join(" ")));
  const ofPlugin = optionTable(plugin.options);
  return [
    head,
    ...leavesOf(own).map((command) => sectionOf(command, shared)),
    `\n## kubectl nodekeeper\n\nIts commands are those that are marked; these options name the node and the cluster, before or after the command:\n\n${ofPlugin}`,
  ].join("");
}

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

function pathOf(command: Command): string[] {
  return [...(command.parent ? pathOf(command.parent) : []), command.name()];
}

function sectionOf(command: Command, shared: ReadonlySet<string>): string {
  const path = pathOf(command);
  const values = command.registeredArguments;
  const shown = values.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
  const mark = shared.has(path.slice(1).join(" ")) ? " Also of `kubectl nodekeeper`." : "";
  const ofArguments = values.map(
    (one) => `- \`${one.name()}\`: ${one.description}${choicesOf(one.argChoices)}\n`,
  );
  // Those in groups are settings of the agent.
  const options = command.options.filter(({ helpGroupHeading, hidden }) => !helpGroupHeading && !hidden);
  return [
    `\n## ${path.join(" ")}\n\n\`${[...path, ...shown].join(" ")}\`: ${command.description()}.${mark}\n`,
    ofArguments.length > 0 ? `\n${ofArguments.join("")}` : "",
    options.length > 0 ? `\n${optionTable(options)}` : "",
  ].join("");
}

function optionTable(options: readonly Option[]): string {
  const rows = options.map(({ flags, description, defaultValue, envVar, argChoices }) => {
    const initial = defaultValue === undefined || defaultValue === false ? "" : `\`${defaultValue}\``;
    const variable = envVar ? `${initial && ", "}${initial ? "or " : ""}${envVar}` : "";
    const meaning = `${description}${choicesOf(argChoices)}`.replaceAll("|", "\\|");
    return `| \`${flags.replaceAll("|", "\\|")}\` | ${initial}${variable} | ${meaning} |`;
  });
  return `| option | default | |\n|---|---|---|\n${rows.join("\n")}\n`;
}

function choicesOf(choices: readonly string[] | undefined): string {
  return choices ? `: ${choices.join(", ")}` : "";
}
