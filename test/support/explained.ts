import { runCli } from "../../packages/agent/src/cli/index.ts";

/** The page about a pod ("namespace/name") from the state directory: no agent is needed for it. */
export async function explainedPod(stateDir: string, pod: string): Promise<string> {
  let page = "";
  const write = (text: string) => {
    page += text;
  };
  const words = ["explain", "pod", pod, "--from", stateDir];
  await runCli(["node", "nodekeeper", ...words], { write, isTerminal: false, columns: 120 });
  return page;
}
