/** A package.json. */
export interface Manifest {
  name: string;
  version: string;
  description: string;
  license: string;
  dependencies?: Record<string, string>;
  [more: string]: unknown;
}

/**
 * Returns the package.json that is published: core is in the bundles, and no importer builds them. npm accepts provenance
 * only for a package that names the repository of the workflow.
 * @param repository URL of the repository, as the package.json of the root has it
 * @param directory of the package in the repository
 */
export function publishedManifest(
  { devDependencies: _, ...manifest }: Manifest,
  repository: string,
  directory: string,
): Manifest {
  return {
    ...manifest,
    homepage: `${repository}/tree/main/${directory}#readme`,
    repository: { type: "git", url: `git+${repository}.git`, directory },
    bugs: `${repository}/issues`,
  };
}
