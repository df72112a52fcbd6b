// Makes packages/core/src/gen from proto/, and the settings in docs/configuration.md: npm run generate
import { writeConfigurationPage } from "./configuration-page.ts";
import { generate } from "./generated-code.ts";

await generate();
await writeConfigurationPage();
