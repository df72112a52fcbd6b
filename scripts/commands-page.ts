import { createProgram } from "../packages/agent/src/cli/index.ts";
import { ClusterAccess } from "../packages/agent/src/cli/kubectl/access.ts";
import { createKubectlProgram } from "../packages/agent/src/cli/kubectl/program.ts";
import { localAccess } from "../packages/agent/src/cli/local-access.ts";
import { standardOutput } from "../packages/agent/src/cli/output.ts";
import { tableOf, withSections } from "./docs/tables.ts";

type Command = ReturnType<typeof createProgram>;
type Option = Command["options"][number];

/** docs/commands.md with a section for each command, from the declarations. */
export function commandsPage(page: string): string {
  const rest = { output: standardOutput, fail: () => {} };
  const own = createProgram({ ...rest, agents: localAccess });
  const plugin = createKubectlProgram({ ...rest, agents: new ClusterAccess({}) });
  const namesOf = (program: Command) => new Set(leavesOf(program).map(nameOf));
  const [shared, ofAgent] = [namesOf(plugin), namesOf(own)];
  return withSections(page, [
    ...leavesOf(own).map((command) => sectionOf(command, shared)),
    `## kubectl nodekeeper\n\nIts commands are those that are marked, and those below; these options name the node and the cluster, before or after the command:\n${optionTable(plugin.options)}`,
    ...leavesOf(plugin)
      .filter((command) => !ofAgent.has(nameOf(command)))
      .map((command) => sectionOf(command, new Set())),
  ]);
}

// A command with arguments of its own runs without a subcommand too.
function leavesOf(command: Command): Command[] {
  const { commands, registeredArguments } = command;
  const runs = commands.length === 0 || registeredArguments.length > 0;
  return [...(runs ? [command] : []), ...commands.flatMap(leavesOf)];
}

function pathOf(command: Command): string[] {
  return [...(command.parent ? pathOf(command.parent) : []), command.name().replace(/^kubectl-/, "kubectl ")];
}

/** Without the program. */
function nameOf(command: Command): string {
  return pathOf(command).slice(1).join(" ");
}

function sectionOf(command: Command, shared: ReadonlySet<string>): string {
  const path = pathOf(command);
  const values = command.registeredArguments;
  const shown = values.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
  const mark = shared.has(nameOf(command)) ? " Also of `kubectl nodekeeper`." : "";
  const ofArguments = values.map(
    (one) => `- \`${one.name()}\`: ${one.description}${choicesOf(one.argChoices)}\n`,
  );
  // Those in groups are settings of the agent.
  const options = command.options.filter(({ helpGroupHeading, hidden }) => !helpGroupHeading && !hidden);
  return [
    `## ${path.join(" ")}\n\n\`${[...path, ...shown].join(" ")}\`: ${command.description()}.${mark}\n`,
    ofArguments.length > 0 ? `\n${ofArguments.join("")}` : "",
    options.length > 0 ? optionTable(options) : "",
  ].join("");
}

function optionTable(options: readonly Option[]): string {
  const rows = options.map(({ flags, description, defaultValue, envVar, argChoices }) => {
    const initial = defaultValue === undefined || defaultValue === false ? [] : [`\`${defaultValue}\``];
    const defaults = [...initial, ...(envVar ? [envVar] : [])].join(", or ");
    return [`\`${flags}\``, defaults, `${description}${choicesOf(argChoices)}`];
  });
  return `\n${tableOf(["option", "default", "meaning"], rows)}\n`;
}

function choicesOf(choices: readonly string[] | undefined): string {
  return choices ? `: ${choices.join(", ")}` : "";
}
