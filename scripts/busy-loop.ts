// Takes a core for as long as the process lives that forked it: scripts/stress.ts
const SLICE_MS = 20;

process.once("disconnect", () => process.exit());
spin();

function spin(): void {
  for (const end = performance.now() + SLICE_MS; performance.now() < end; );
  setImmediate(spin);
}
