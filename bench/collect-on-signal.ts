// For `node --expose-gc --import`: collects the process's garbage on SIGUSR2, so that a bench compares what is kept.
process.on("SIGUSR2", () => globalThis.gc?.());
