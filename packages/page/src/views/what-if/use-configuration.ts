import { useEffect, useState } from "preact/hooks";
import { type ApiAnswers, ask } from "../../api.ts";
import { shown } from "../../text.ts";

interface Read {
  configuration?: ApiAnswers["configuration"];
  /** Why it could not be read. */
  problem?: string;
}

/** The configuration in force, as it was when the view was opened or `read` was called last. */
export function useConfiguration(): Read & { read(): void } {
  const [state, setState] = useState<Read>({});
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    ask("configuration", {}, controller.signal).then(
      (configuration) => setState({ configuration }),
      (error: Error) => controller.signal.aborted || setState({ problem: shown(error.message, 500) }),
    );
    return () => controller.abort();
  }, [times]);
  return { ...state, read: () => setTimes(times + 1) };
}
