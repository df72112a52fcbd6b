import { findDeadLinks } from "./links.ts";
import { listProblems, markdownFiles } from "./pages.ts";

/**
 * What is wrong with the documentation of the repository at `root`, one line each: unlisted pages, dead links.
 */
export async function findDocsProblems(root: string): Promise<string[]> {
  const files = await markdownFiles(root);
  return [...listProblems(files), ...(await findDeadLinks(root, files))];
}
