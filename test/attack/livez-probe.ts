// Asks /livez every 20 ms, as a kubelet on a connection of its own each time: node test/attack/livez-probe.ts PORT.
// Each line of input is answered with the longest time until an answer since the last line, milliseconds.
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const port = Number(process.argv[2]);
let longestMs = 0;
let startedAt: number | undefined;

process.stdin.on("data", () => {
  const waitingMs = startedAt === undefined ? 0 : performance.now() - startedAt;
  console.log(Math.max(longestMs, waitingMs).toFixed(1));
  longestMs = 0;
});
process.stdin.once("end", () => process.exit());

function isAnswered(): Promise<boolean> {
  return new Promise((resolve) => {
    request({ port, host: "127.0.0.1", path: "/livez", agent: false }, (answer) =>
      answer.resume().once("end", () => resolve(answer.statusCode === 200)),
    )
      .once("error", () => resolve(false))
      .end();
  });
}

// A connection that is closed unanswered is no answer: the next one continues the wait.
for (;;) {
  startedAt ??= performance.now();
  if (await isAnswered()) {
    longestMs = Math.max(longestMs, performance.now() - startedAt);
    startedAt = undefined;
  }
  await sleep(20);
}
