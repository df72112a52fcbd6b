import { registerHooks } from "node:module";

// Preloaded by tests: prints the modules of the archive that are loaded.
registerHooks({
  load(url, context, nextLoad) {
    if (/\/src\/archive\/|\/gen\/opentelemetry\//.test(url)) process.stderr.write(`loaded ${url}\n`);
    return nextLoad(url, context);
  },
});
