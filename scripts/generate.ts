// Makes packages/core/src/gen from proto/, the settings in docs/configuration.md, docs/errors.md, and templates of the chart: npm run generate
import { writeChartTemplates } from "./chart-templates.ts";
import { writeConfigurationPage } from "./configuration-page.ts";
import { writeErrorsPage } from "./errors-page.ts";
import { generate } from "./generated-code.ts";

await generate();
await writeConfigurationPage();
await writeErrorsPage();
await writeChartTemplates();
