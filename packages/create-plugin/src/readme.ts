import { resolve } from "node:path";
import type { Choices } from "./arguments.ts";
import { imageOf } from "./deployment.ts";
import { languageNames, scriptsOf } from "./manifest.ts";
import type { Kind } from "./templates.ts";

const whatItDoes: Readonly<Record<Kind, string>> = {
  reporter:
    "It reports simulated widgets of the node: Nodekeeper publishes them in the node's CustomNodeResource and as a label of the Node.",
  eviction:
    'It watches a memory that it makes up, and requests the eviction of pods with the label `example.com/sample=true` when they use more than the limit together. **It has real pods evicted** if the agent runs with eviction switched on, as in the development cluster: give no other pod that label. An agent on a node only records the requests until `eviction.dryRunPlugins` is `["*", "-NAME"]`, with the name of this plugin, or `[]`; the default is `["*"]`.',
  driver:
    "It streams simulated accelerators of the node, and prepares them for pods: Nodekeeper publishes them as ResourceSlices, and calls the driver for the claims of pods.",
};

const titles: Readonly<Record<Kind, string>> = {
  reporter: "A reporter plugin",
  eviction: "An eviction plugin",
  driver: "A device driver",
};

const guides: Readonly<Record<Kind, string>> = {
  reporter: "plugin-authors.md",
  eviction: "plugin-authors.md#eviction-plugins",
  driver: "devices.md",
};

/** Returns the project's README: a description and the commands in order. */
export function readmeOf(choices: Choices): string {
  const { name, kind, language } = choices;
  const { build, check } = scriptsOf(choices);
  return `# ${name}

${titles[kind]} for Nodekeeper in ${languageNames[language]}. ${whatItDoes[kind]}

\`\`\`sh
${commands(choices).join("\n")}
\`\`\`

${build ? `\`npm run build\` is \`${build}\`. ` : ""}${check ? `\`npm run check\` is \`${check}\`. ` : ""}The test starts a development
cluster with an agent, runs the plugin beside it, and waits for what is published. To try the plugin by hand, start such a
cluster in one terminal and the plugin in another:

\`\`\`sh
npx nodekeeper dev --data-dir /tmp/nkdev --server 127.0.0.1:10377
npm start -- --socket-dir /tmp/nkdev/plugins_registry
npx nodekeeper plugins list --server 127.0.0.1:10377
\`\`\`

On a node, the default of \`--socket-dir\` is the directory that the agent watches. Everything that a plugin can do:
\`node_modules/nodekeeper/docs/${guides[kind]}\`.

## On the nodes of a cluster

\`\`\`sh
docker build -t REGISTRY/${imageOf(choices)} .
docker push REGISTRY/${imageOf(choices)}
kubectl apply --namespace nodekeeper --filename deploy/daemonset.yaml
kubectl nodekeeper plugins list --node NODE
\`\`\`

REGISTRY is a registry that the nodes reach: before \`kubectl apply\`, name the image with it in \`deploy/daemonset.yaml\`.
NODE is a node that runs the plugin: \`kubectl --namespace nodekeeper get pods --output wide\` shows them. The plugin needs no
permissions at the API server. \`.github/workflows/ci.yml\` tests the plugin and builds the image; it needs the \`package-lock.json\` that
\`npm install\` wrote. The reasons for each setting: \`node_modules/nodekeeper/docs/daemonset.md\`.
`;
}

/** Returns the commands to run after the project was created, starting in the current directory. */
export function nextSteps(choices: Choices): string[] {
  const isHere = resolve(choices.directory) === process.cwd();
  return [...(isHere ? [] : [`cd ${shellWord(choices.directory)}`]), ...commands(choices)];
}

/** Quotes a text as one word for a POSIX shell. Also quotes a leading "~", which is part of the name here. */
function shellWord(text: string): string {
  if (/^[\w./][\w./:@%+=,-]*$/.test(text)) return text;
  // A leading "-" would be parsed as an option.
  const word = text.startsWith("-") ? `./${text}` : text;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns the commands to run in a new project. */
export function commands(choices: Choices): string[] {
  return ["npm install", ...(scriptsOf(choices).build ? ["npm run build"] : []), "npm test"];
}
