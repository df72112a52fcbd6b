// Builds the documentation as a site: npm run docs [-- --serve [port]]
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { foreignAddresses } from "./docs/foreign.ts";
import { findDocsProblems } from "./docs/links.ts";
import { serveDirectory } from "./docs/serve.ts";
import { buildSite } from "./docs/site.ts";
import { root } from "./programs.ts";

const out = join(root, "dist/docs");
const startedAt = performance.now();
const pages = await buildSite(root, out);
const problems = await findDocsProblems(root);
for await (const path of glob("**/*.{html,css,js,svg}", { cwd: out })) {
  const found = foreignAddresses(await readFile(join(out, path), "utf8"));
  problems.push(...found.map((address) => `dist/docs/${path}: loads ${address}`));
}
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(`dist/docs: ${pages.length} pages in ${seconds} s`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;

const serveAt = process.argv.indexOf("--serve");
if (serveAt > 0) {
  const { url } = await serveDirectory(out, Number(process.argv[serveAt + 1] ?? 8000));
  console.log(url);
}
