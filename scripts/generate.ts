// Makes packages/core/src/gen from proto/, the settings in docs/configuration.md, and docs/errors.md: npm run generate
import { writeConfigurationPage } from "./configuration-page.ts";
import { writeErrorsPage } from "./errors-page.ts";
import { generate } from "./generated-code.ts";

await generate();
await writeConfigurationPage();
await writeErrorsPage();
