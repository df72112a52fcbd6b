// Commands that differ while nothing is published: `publishedTo` in package.json is the switch.
import { dirname, relative } from "node:path";

/** Sentences between `<!-- publication: NAME -->` and `<!-- /publication -->`: before and after the first release. */
const sentences: Readonly<Record<string, (registry: string, install: string) => string>> = {
  image: (registry) =>
    registry
      ? `A release has the image \`${registry}/nodekeeper\`, which its chart names by digest. To build one yourself and push it to your registry, on Debian without a container engine:`
      : "There is no published image yet. Build one and push it to your registry, on Debian without a container engine:",
  cluster: (registry, install) =>
    registry
      ? "Into a cluster:"
      : `From source, into a cluster: build the [image](${install}#the-image), push it to your registry, and then`,
  packages: (registry, install) =>
    registry
      ? `The packages are signed with their [provenance](${install}#verifying-a-release).`
      : `The packages are not published yet: [build them](${install}#packages), and install their archives in place of their names.`,
};

/**
 * Returns `page` with the commands and sentences of a release that is published in `registry`; from source if it is "".
 * @param path of the page, from the repository's root
 * @throws if the page has a sentence of an unknown name
 */
export function withPublication(path: string, page: string, registry: string): string {
  const install = relative(dirname(path), "docs/install.md");
  const chart = registry ? `oci://${registry}/charts/nodekeeper` : "deploy/helm/nodekeeper";
  const image = registry ? "" : " \\\n  --set image.repository=REGISTRY/nodekeeper";
  return page
    .replace(/(<!-- publication: (\w+) -->\n).*?(?=<!-- \/publication -->)/gs, (_, marker, name) => {
      const sentence = sentences[name];
      if (!sentence)
        throw new Error(`${path}: there is no sentence "${name}" in scripts/docs/publication.ts`);
      return `${marker}${sentence(registry, install)}\n`;
    })
    .replace(/(?<=helm (?:install|upgrade) nodekeeper )\S+/g, chart)
    .replace(
      /(helm install nodekeeper (?:(?! \\?\n).)*)(?: \\\n {2}--set image.repository=REGISTRY\/nodekeeper)?$/gm,
      `$1${image}`,
    );
}
