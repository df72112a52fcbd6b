// Bundles the pages for agents and the plugin of kubectl that run from source: npm run page
import { buildFleetPage, buildPage, pageDirectory } from "./page-bundle.ts";

await buildPage(pageDirectory);
await buildFleetPage(pageDirectory);
