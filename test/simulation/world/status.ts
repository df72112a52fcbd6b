import { request as send } from "node:http";
import type { World } from "./world.ts";

/** Reads a path of the agent's status server, and lets the world go on until it has answered. */
export async function request(world: World, path: string): Promise<{ status: number; body: string }> {
  const { machine } = world;
  const [host = "", port = ""] = "127.0.0.1:10290".split(":");
  const answer = machine.init.run(
    () =>
      new Promise<{ status: number; body: string }>((resolve) => {
        const outgoing = send({ host, port, method: "GET", path, headers: { host } });
        outgoing.on("response", (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
          );
        });
        outgoing.on("error", (error) => resolve({ status: 0, body: error.message }));
        outgoing.end();
      }),
  );
  let found: { status: number; body: string } | undefined;
  void answer.then((value) => {
    found = value;
  });
  for (let waited = 0; waited < 30_000 && !found; waited += 20)
    await machine.scheduler.run(machine.scheduler.now + 20);
  return found ?? { status: 0, body: "no answer within 30 s" };
}
