// Bundles the page for agents that run from source: npm run page
import { buildPage, pageFolder } from "./page-bundle.ts";

await buildPage(pageFolder);
