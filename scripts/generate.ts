// Makes packages/core/src/gen from proto/, and the files that scripts/generated-files.ts lists: npm run generate
import { generate } from "./generated-code.ts";
import { writeGeneratedFiles } from "./generated-files.ts";

await generate();
await writeGeneratedFiles();
