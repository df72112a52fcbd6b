// Makes src/gen from proto/: npm run generate
import { generate } from "./generated-code.ts";

await generate();
