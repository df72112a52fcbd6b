import { explanationPage } from "../../../packages/agent/src/cli/eviction/explanation-page.ts";
import { roundLine } from "../../../packages/agent/src/cli/eviction/round-line.ts";
import { type Statements, statementsOf } from "../../support/endings/claims.ts";
import { request } from "./status.ts";
import type { World } from "./world.ts";

const output = { write: () => {}, isTerminal: false, columns: 200 };

/** Reads what the agent states about pods, as the commands word it. */
export async function statementsAbout<P extends { uid: string; name: string }>(
  world: World,
  pods: readonly P[],
): Promise<{ pod: P; said: Statements }[]> {
  const rounds = await allPages(world, "eviction/rounds?since=0");
  const lines = rounds.map((round) => roundLine(round, output));
  const evictions = await allPages(world, "eviction/evictions?since=0");
  const marks = await allPages(world, "marks?since=0");
  const all = [];
  for (const pod of pods) {
    const explanation = await read(world, `eviction/explain?pod=${pod.uid}`);
    const page = explanation.error?.message ?? explanationPage(explanation, output);
    all.push({ pod, said: statementsOf({ explanation, page, rounds, lines, evictions, marks }, pod) });
  }
  return all;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of the API
export async function read(world: World, path: string): Promise<any> {
  const { status, body } = await request(world, `/api/v1/${path}`);
  if (status === 0) throw new Error(`${path}: ${body}`);
  return JSON.parse(body);
}

/** Reads a list whose pages are arrays, or have the number after which the next one begins. */
// biome-ignore lint/suspicious/noExplicitAny: rows of the API
export async function allPages(world: World, path: string): Promise<any[]> {
  // biome-ignore lint/suspicious/noExplicitAny: rows of the API
  const all: any[] = [];
  for (let after = 0; ; ) {
    const page = await read(world, `${path}&after=${after}`);
    const items = Array.isArray(page) ? page : (page.items ?? page.records);
    all.push(...items);
    const next = Array.isArray(page) ? items.at(-1)?.id : page.next;
    if (next === undefined) return all;
    after = next;
  }
}
