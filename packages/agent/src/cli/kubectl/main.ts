import { runKubectlPlugin } from "./program.ts";

runKubectlPlugin(process.argv).then((status) => {
  process.exitCode = status;
});
