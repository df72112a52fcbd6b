// Makes packages/core/src/gen from proto/, the settings in docs/configuration.md, docs/commands.md, docs/errors.md, docs/events.md, docs/metrics.md, templates and dashboard of the chart, and its values in docs/install.md: npm run generate
import { writeChartSchema } from "./chart-schema.ts";
import { writeChartTemplates } from "./chart-templates.ts";
import { writeChartValues } from "./chart-values-page.ts";
import { writeConfigurationPage } from "./configuration-page.ts";
import { writeDashboard } from "./dashboard.ts";
import { writeErrorsPage } from "./errors-page.ts";
import { generate } from "./generated-code.ts";
import { writeGeneratedPages } from "./generated-pages.ts";

await generate();
await writeConfigurationPage();
await writeErrorsPage();
await writeGeneratedPages();
await writeChartTemplates();
await writeChartValues();
await writeDashboard();
await writeChartSchema();
