import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EvictionPolicy } from "../../../../agent/src/eviction/replay/index.ts";
import type { FromWorker, RecordsRead, ReplayResult, ToWorker } from "./messages.ts";

/** The replay of recorded rounds, as far as it is. */
export interface ReplayState {
  records?: RecordsRead;
  /** Of the replay that runs. */
  progress?: { done: number; of: number };
  /** Of the last replay that completed. */
  result?: ReplayResult;
  /** Whether the result is not yet that of the policy. */
  isOld: boolean;
  /** Whether the worker's file could not be loaded, or it failed. */
  hasFailed: boolean;
  readAgain(): void;
  readMore(): void;
  stop(): void;
}

// A field that is being typed in is replayed when there is a pause.
const PAUSE_MS = 250;

/**
 * Replays the rounds since a time, milliseconds since the epoch, with a policy, and again when one of both changes; without
 * a policy the rounds are read only. The worker ends with the component.
 */
export function useReplay(since: number, policy: EvictionPolicy | undefined): ReplayState {
  const worker = useRef<Worker | null>(null);
  const run = useRef(0);
  const [records, setRecords] = useState<RecordsRead>();
  const [progress, setProgress] = useState<{ run: number; done: number; of: number }>();
  const [result, setResult] = useState<ReplayResult>();
  const [replayed, setReplayed] = useState<string>();
  const [hasFailed, setFailed] = useState(false);
  const send = (message: ToWorker) => worker.current?.postMessage(message);

  useEffect(() => {
    const started = startWorker();
    worker.current = started;
    started.addEventListener("error", () => setFailed(true));
    started.addEventListener("message", ({ data }: MessageEvent<FromWorker>) => {
      if (data.kind === "records") setRecords(data.records);
      else if (data.kind === "progress") setProgress(data);
      else {
        setResult(data.result);
        setProgress(undefined);
      }
    });
    return () => started.terminate();
  }, []);

  useEffect(() => {
    setResult(undefined);
    send({ kind: "read", since });
  }, [since]);

  const key = useMemo(() => JSON.stringify(policy), [policy]);
  useEffect(() => {
    if (!policy) return undefined;
    const timer = setTimeout(() => {
      setReplayed(key);
      send({ kind: "replay", run: ++run.current, policy });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [key]);

  return {
    ...(records ? { records } : {}),
    ...(progress && progress.run === run.current ? { progress } : {}),
    ...(result ? { result } : {}),
    isOld: key !== replayed || result?.run !== run.current,
    hasFailed,
    readAgain: () => send({ kind: "read", since }),
    readMore: () => send({ kind: "readMore" }),
    stop() {
      setProgress(undefined);
      send({ kind: "stop" });
    },
  };
}

// Built as an entry of its own, beside the file that this becomes part of.
function startWorker(): Worker {
  return new Worker(new URL("./what-if-worker.js", import.meta.url), { type: "module" });
}
