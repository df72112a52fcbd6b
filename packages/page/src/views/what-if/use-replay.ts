import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EvictionPolicy } from "../../../../agent/src/eviction/replay/index.ts";
import type { FromWorker, RecordsRead, ReplayResult, ToWorker } from "./messages.ts";

/** The replay of recorded rounds, as far as it is. */
export interface ReplayState {
  records?: RecordsRead;
  /** Of the replay that runs. */
  progress?: { done: number; of: number };
  result?: ReplayResult;
  /** Whether the result is not yet that of the policy and of all rounds that are read. */
  isOld: boolean;
  isStopped: boolean;
  /** Whether the worker's file could not be loaded, or it failed. */
  hasFailed: boolean;
  /** Reads the rounds after those that are read; from the start again where none is. */
  readMore(): void;
  stop(): void;
  resume(): void;
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

// Built as an entry of its own, beside the file that this becomes part of.
function startWorker(): Worker {
  return new Worker(new URL("./what-if-worker.js", import.meta.url), { type: "module" });
}
