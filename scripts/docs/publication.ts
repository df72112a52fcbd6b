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
