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

/**
 * Whether the page states that an accepted eviction evicted its pod, or that this is not known: a kill between a request and
 * the record of its response leaves it unknown whether it was accepted.
 */
export function statesEviction(page: string): boolean {
  return /\n(?:Evicted at |Selected at .*; whether Nodekeeper evicted it is not known: )/.test(page);
}
