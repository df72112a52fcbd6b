import type { EvictionPolicy } from "@nodekeeper/api/decide";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FromWorker, RecordsRead, ReplayResult, ToWorker } from "./messages.ts";

/** State of the replay of recorded rounds. */
export interface ReplayState {
  records?: RecordsRead;
  /** Progress of the current replay. */
  progress?: { done: number; of: number };
  result?: ReplayResult;
  /** Whether the result does not yet cover the current policy and all rounds read. */
  isOld: boolean;
  isStopped: boolean;
  /** Whether the worker's file could not be loaded, or the worker failed. */
  hasFailed: boolean;
  /** Reads the rounds after those already read, or from the start if there are none. */
  readMore(): void;
  stop(): void;
  resume(): void;
}

// Replays after a pause in typing.
const PAUSE_MS = 250;

/**
 * Replays the rounds since a time, milliseconds since the epoch, with a policy, and again when either changes. Without
 * a policy, the rounds are only read. The worker is terminated with the component.
 */
export function useReplay(since: number, policy: EvictionPolicy | undefined): ReplayState {
  const worker = useRef<Worker | null>(null);
  const run = useRef(0);
  const [records, setRecords] = useState<RecordsRead>();
  const [progress, setProgress] = useState<{ run: number; done: number; of: number }>();
  const [result, setResult] = useState<ReplayResult>();
  const [replayed, setReplayed] = useState<string>();
  const [isStopped, setStopped] = useState(false);
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
    setStopped(false);
    send({ kind: "read", since });
  }, [since]);

  const key = useMemo(() => JSON.stringify(policy), [policy]);
  useEffect(() => {
    if (!policy) return undefined;
    const timer = setTimeout(() => {
      setReplayed(key);
      setStopped(false);
      send({ kind: "replay", run: ++run.current, policy });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [key]);

  const isEmpty = records?.rounds === 0 && !records.isReading;
  return {
    ...(records ? { records } : {}),
    ...(progress && progress.run === run.current ? { progress } : {}),
    ...(result ? { result } : {}),
    isOld: !isEmpty && (key !== replayed || !result || result.run !== run.current || isPart(result, records)),
    isStopped,
    hasFailed,
    readMore() {
      setStopped(false);
      send({ kind: "readMore" });
    },
    stop() {
      setProgress(undefined);
      setStopped(true);
      send({ kind: "stop" });
    },
    resume() {
      setStopped(false);
      send({ kind: "resume" });
    },
  };
}

function isPart({ replay, malformed }: ReplayResult, records: RecordsRead | undefined): boolean {
  return replay.rounds + malformed.length < (records?.rounds ?? 0);
}

// Built as a separate entry, next to the file that includes this code.
function startWorker(): Worker {
  return new Worker(new URL("./what-if-worker.js", import.meta.url), { type: "module" });
}
