import { useRef } from "preact/hooks";
import type { Live } from "../../live.ts";

/** A version that does not change while no agent answers, and changes when one does again. */
export function useLiveVersion({ connection }: Pick<Live, "connection">, version: string): string {
  const lostAt = useRef(0);
  const kept = useRef(version);
  if (connection.state === "lost") lostAt.current = connection.at;
  else kept.current = `${version} ${lostAt.current}`;
  return kept.current;
}
