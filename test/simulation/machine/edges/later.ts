import { machineOf } from "../machine.ts";
import { currentProcess } from "../process.ts";

/** Does work of a file at once, as the current process, and gives its result in a later event. */
export function later<T>(work: () => T): Promise<T> {
  const process = currentProcess();
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) =>
      void process.after(machineOf(process).network.weather.localMs() / 4, settle);
    try {
      process.edge();
      const result = work();
      finish(() => resolve(result));
    } catch (error) {
      finish(() => reject(error));
    }
  });
}
