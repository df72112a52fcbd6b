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
  return (await awaited(world, answer)) ?? { status: 0, body: "no answer within 30 s" };
}

/** Returns the lines of the agent's failing health checks. */
export async function failing(world: World): Promise<string[]> {
  const { body } = await request(world, "/readyz?verbose");
  return body.split("\n").filter((line) => line.startsWith("[-]"));
}

/** Lets the world go on until a promise is resolved. Returns undefined if it is not within 30 s. */
export async function awaited<T>({ machine }: World, promise: Promise<T>): Promise<T | undefined> {
  let settled: { value: T } | { error: unknown } | undefined;
  promise.then(
    (value) => {
      settled = { value };
    },
    (error: unknown) => {
      settled = { error };
    },
  );
  for (let waited = 0; waited < 30_000 && !settled; waited += 20)
    await machine.scheduler.run(machine.scheduler.now + 20);
  if (settled && "error" in settled) throw settled.error;
  return settled?.value;
}
