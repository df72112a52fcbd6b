// Commands that differ while nothing is published: `publishedTo` in package.json is the switch.
import { dirname, join, relative } from "node:path";

const pluginFromSource = `\`\`\`sh run=repository
npm run build
\`\`\`

\`\`\`sh run=test/e2e/helm.e2e.test.ts
install -m 755 dist/nodekeeper/kubectl-nodekeeper.cjs /usr/local/bin/kubectl-nodekeeper
install -m 755 dist/nodekeeper/kubectl_complete-nodekeeper /usr/local/bin/
kubectl nodekeeper --help
\`\`\`

The second file is for completion.`;

const pluginFromNpm = `\`\`\`sh run=test/e2e/release.e2e.test.ts
npm install --global nodekeeper
kubectl nodekeeper --help
\`\`\`

A release also has the files \`kubectl-nodekeeper.cjs\`, to be installed into PATH without its suffix, and
\`kubectl_complete-nodekeeper\` for completion.`;

const tryFromSource = (
  to: (page: string) => string,
) => `On any Linux machine with Node 20 or later, in a checkout of this repository (\`npm ci\` installs the pinned Node 24, and may warn
that your Node is older):

\`\`\`sh run=repository
npm ci && npm start     # an API server in memory, a simulated container runtime, the agent, sample plugins, and evictions
npm ci && npm test      # the test suite
\`\`\`

\`npm start\` prints the address of the [page](${to("guides/page.md")}), which shows all of this live, and commands to try. Ctrl-C stops
everything.`;

const tryFromNpm = (to: (page: string) => string) => `On any Linux machine with Node 24 or later:

\`\`\`sh not-run="stays in the foreground; test/e2e/packages.e2e.test.ts runs it with an address of its own"
npx nodekeeper dev     # an API server in memory, a simulated container runtime, the agent, sample plugins, and evictions
\`\`\`

It prints the address of the [page](${to("guides/page.md")}), which shows all of this live, and commands to try. Ctrl-C stops
everything.`;

/** Texts between `<!-- publication: NAME -->` and `<!-- /publication -->`: before and after the first release. */
const texts: Readonly<Record<string, (registry: string, to: (page: string) => string) => string>> = {
  image: (registry) =>
    registry
      ? `A release has the image \`${registry}/nodekeeper\`, which its chart names by digest. To build one yourself and push it to your registry, on Debian without a container engine:`
      : "There is no published image yet. Build one and push it to your registry, on Debian without a container engine:",
  cluster: (registry, to) =>
    registry
      ? "Into a cluster:"
      : `From source, into a cluster: build the [image](${to("guides/install.md#the-image")}), push it to your registry, and then`,
  try: (registry, to) => (registry ? tryFromNpm(to) : tryFromSource(to)),
  plugin: (registry) => (registry ? pluginFromNpm : pluginFromSource),
  packages: (registry, to) =>
    registry
      ? `The packages are signed with their [provenance](${to("install.md#verifying-a-release")}).`
      : `The packages are not published yet: [build them](${to("install.md#packages")}), and install their archives in place of their names.`,
};

/**
 * Returns `page` with the commands and texts of a release that is published in `registry`; from source if it is "".
 * @param path of the page, from the repository's root
 * @throws if the page names an unknown text
 */
export function withPublication(path: string, page: string, registry: string): string {
  const to = (page: string) => relative(dirname(path), join("docs", page));
  const chart = registry ? `oci://${registry}/charts/nodekeeper` : "deploy/helm/nodekeeper";
  const image = registry ? "" : " \\\n  --set image.repository=REGISTRY/nodekeeper";
  return page
    .replace(/(<!-- publication: (\w+) -->\n).*?(?=<!-- \/publication -->)/gs, (_, marker, name) => {
      const text = texts[name];
      if (!text) throw new Error(`${path}: there is no text "${name}" in scripts/docs/publication.ts`);
      return `${marker}${text(registry, to)}\n`;
    })
    .replace(/(?<=helm (?:install|upgrade) \w+ )(?:deploy\/helm|oci:\/\/\S+\/charts)\/nodekeeper/g, chart)
    .replace(
      /(helm install \w+ (?:(?! \\?\n).)*)(?: \\\n {2}--set image.repository=REGISTRY\/nodekeeper)?(?= \\\n|$)/gm,
      `$1${image}`,
    );
}
