import { AnswerNotOfKubernetes } from "@nodekeeper/api/errors";
import type { Connection } from "./connection.ts";
import { isRecord, textOf } from "./objects.ts";
import type { CallOptions, ServerVersion } from "./types.ts";

/** Returns the version of the server. */
export async function readServerVersion(
  connection: Connection,
  options?: CallOptions,
): Promise<ServerVersion> {
  const value = await read(connection, "/version", options);
  const { gitVersion, major, minor, platform } = value;
  return {
    gitVersion: textOf(gitVersion),
    major: textOf(major),
    minor: textOf(minor),
    platform: textOf(platform),
  };
}

async function read(connection: Connection, path: string, options: CallOptions | undefined) {
  const { value } = await connection.call(
    { method: "GET", path, verb: "get", resource: "discovery" },
    options,
  );
  if (isRecord(value)) return value;
  throw new AnswerNotOfKubernetes({ request: `GET ${path}`, problem: "the response is not an object" });
}
