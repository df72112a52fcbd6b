import { useEffect, useState } from "preact/hooks";

/** A value as it was when it had not changed for `ms`: what is typed, once typing pauses. */
export function useDeferred<T>(value: T, ms: number): T {
  const [deferred, setDeferred] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDeferred(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return deferred;
}
