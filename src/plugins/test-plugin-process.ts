// A plugin as a process of its own, for tests that kill it: `node test-plugin-process.ts <socket> <name>`.
import { servePlugin } from "./test-support.ts";

const [path, name] = process.argv.slice(2);
await servePlugin(path!, { name: name! });
process.stdout.write("serving\n");
