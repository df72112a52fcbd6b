// Bundles the page for agents that run from source: npm run page
import { buildPage, pageDirectory } from "./page-bundle.ts";

await buildPage(pageDirectory);
