import { useRef } from "preact/hooks";
import type { Live } from "../../live.ts";

/** Returns a version that is stable while the agent is unreachable, and changes when it is reachable again. */
export function useLiveVersion({ connection }: Pick<Live, "connection">, version: string): string {
  const lostAt = useRef(0);
  const kept = useRef(version);
  if (connection.state === "lost") lostAt.current = connection.at;
  else kept.current = `${version} ${lostAt.current}`;
  return kept.current;
}
