// Reads and replays outside the page's main thread, because a round with a thousand pods takes longer than a frame.
import { ask } from "../../api.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { ReplaySession } from "./session.ts";

// The page's files are in a directory next to the API.
const page = new URL("../", self.location.href).href;

const session = new ReplaySession({
  readPage: (since, after, signal) => ask("eviction/records", { since, after }, signal, page),
  post: (message: FromWorker) => self.postMessage(message),
  pause: () => new Promise((resolve) => setTimeout(resolve)),
  now: () => performance.now(),
});

self.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => void session.take(data));
