import { useEffect, useState } from "preact/hooks";

/** Returns a value once it has not changed for `ms`, for example input after typing pauses. */
export function useDeferred<T>(value: T, ms: number): T {
  const [deferred, setDeferred] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDeferred(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return deferred;
}
