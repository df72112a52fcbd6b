import type { RowName } from "./rows.ts";

const relist =
  "of the time that the main thread is busy with a relist of 110 pods, Node's own HTTP/2, streams, buffers, timers and promises take 40 %, reading and comparing the list with metrics and pacing 27 %, garbage collection 19 % and the rest outside of JavaScript, such as reading the socket, 14 %. The list is compared where it was received, and only an item that continues in the next chunk is copied ([lifecycle](benchmarks.md#lifecycle)).";

const oneClaim =
  "three hops take most of the time, where the peer, which is the driver itself, has two: in a process with the same servers and clients that makes only these calls, an empty call of the kubelet takes 1.6 ms, with the request for the claim 3.2 ms, and with the call to the driver 5.2 ms, where the agent takes 7.0 ms (p50 of one run on a busy AMD EPYC). The rest is two commits, the check of the answer and the CDI file ([claims](benchmarks.md#claims)).";

const claims =
  "a process with the same servers and clients that makes only the calls of a claim takes two thirds of the CPU time of the agent, 1.07 of 1.63 ms in one run on an AMD EPYC: 0.27 ms are an empty call of the kubelet, 0.40 the request for the claim and 0.23 the call to the driver, which the peer does not have, since it is the driver; both calls together take 0.17 ms more than the sum. What the agent adds, 0.56 ms, is divided among two commits (0.020 ms each), the check of the answer (0.060), the CDI file (0.018), metrics, logs, signals and garbage collection. None of these parts calls fsync. In a burst, one JavaScript thread handles all claims, so that the median waits for half of them; the peer uses both processors ([claims](benchmarks.md#claims)).";

const devices =
  "of 584 ms that the main thread is busy until all is published, garbage collection takes 33 % and reading the driver's message of 1.6 MB, which the peer does not receive, 12 %; 79 requests and their responses 18 %, and encoding the slices 4 %; the remaining third is not broken down ([devices](benchmarks.md#devices)).";

const evictionRound =
  "the goal is the ratio measured on another machine with a program that is not in this repository: 127 ms of CPU beside 2,199 ms. The ratio was 0.08 to 0.12 on an AMD EPYC and is 0.12 to 0.18 on this Intel Xeon, for versions of different days alike. In a round the peer sends the pods twice to each plugin, 5.3 MB each time, and Nodekeeper three times, 2.1 MB each. In a profile on the AMD EPYC, Nodekeeper's thread waited for the sockets in half of its round; 22 % of its CPU time was garbage collection and 20 % was spent outside of JavaScript ([eviction](benchmarks.md#eviction)).";

const memory =
  "an empty process of Node has 44 MB, 9 MB of them anonymous (`agent-off-rss`, `agent-off-anonymous`), and the agent's use of Node's own modules and of V8's compiler adds 16 MB of pages of its executable, so that 78 MB leave 18 MB for all that is the agent's. It takes 24 to 25 MB of anonymous memory beyond the empty process, of which 14 MB are V8's heap (objects, closures, bytecode), 6 MB glibc's, and 4 MB buffers of messages. Without V8's optimizing compiler it would be 5 MB less again, but relists would take a third to two fifths more CPU time ([memory](benchmarks.md#memory)).";

const start =
  "the agent is ready only after it has read all pods of the runtime; everything else is ready before. The start is bound by the CPU: the main thread waits for 3 to 8 % of it, so that nothing is gained by doing more at once. Of the time that the main thread is busy, 0.8 s beside 110 pods, code of the agent and its libraries takes 40 %, Node's own modules 30 %, loading and compiling the program 15 % and garbage collection 8 %; almost all of it runs once or a few times, so that V8 interprets it, while the peer's code is compiled before it starts. With every part off the agent is ready after 40 % of this time. A cache of compiled code saved 80 of 541 ms of CPU on an AMD EPYC, for 1.9 MB of memory ([reporting](benchmarks.md#reporting)).";

const reportingStart =
  "an agent with every part off is ready hardly sooner (`agent-off-start`): the time is that of the frame, not of reporting. A process of Node without a program takes 40 ms. Of what its main thread does with every part off, loading and compiling the program takes 30 %, code of the agent and its libraries that runs once 32 %, Node's own modules 27 %, and garbage collection 5 % ([reporting](benchmarks.md#reporting)).";

const idle =
  "a wake-up costs more than the work that it does, as measured on an AMD EPYC: a process of Node with a timer of 250 ms that does nothing takes 0.07 % of a processor. Without its lifecycle part the agent takes 0.3 %, of which the sampler of eviction takes 0.1 %: it reads the kernel's files every 250 ms, because free memory can fall by gigabytes a second and Node can't wait for the kernel's notifications of pressure. Relists, one every 4 to 10 s in the first minutes, take another 0.1 %, V8's helper threads 0.03 to 0.12 %; the rest is divided among calls and timers. Timers wake it up 4.2 times a second, 4 of them for the sampler ([memory](benchmarks.md#at-rest)).";

const pacing =
  "a change after a quiet second is written at once (`reporting-quiet`); while changes keep coming, Nodekeeper writes them together every 200 ms, so that a change waits 100 ms in the median and 200 ms at most. The API server gets 5 requests a second of a node and not 25 (`reporting-busy-writes`), and Nodekeeper uses less than half of the peer's CPU time ([reporting](benchmarks.md#reporting)).";

const changedDevice =
  "for each change the driver sends all devices again, 1.6 MB, which the agent receives and compares and the peer does not. In a process that does nothing else, receiving it, finding the changed device and planning take 4.8 ms of CPU; of what is left, the largest part is garbage collection. On 2026-11-28, on an AMD EPYC, a change took 11 to 13 ms of CPU, with a ratio of 0.04 to 0.05, and 22 to 34 ms until its write, beside 289 to 440 ms; in all later measurements the ratio of CPU is 0.05 to 0.06. Since then V8's Sparkplug is off and functions are optimized later, which saves 2 MB and more of memory ([devices](benchmarks.md#devices)).";

/**
 * Explanations of figures by row name: Markdown that follows "Why:", with figures of a profile and a link to the
 * section of docs/benchmarks.md that has the profile. Shown if the row misses a goal, or has none.
 */
export const explanations: Readonly<Partial<Record<RowName, string>>> = {
  "relist-110": relist,
  "relist-500": relist,
  "relist-2000": relist,
  "first-list":
    "V8 interprets the code of the 440 status calls before it compiles it, while the peer's is compiled before it starts. In a profile on an AMD EPYC, with a heap that is kept small from the start, a third of the CPU time of the first second was garbage collection, and 17 % the status calls; the agent now keeps it small only after its start ([lifecycle](benchmarks.md#lifecycle)).",
  "changed-pods":
    "the peer waits for 400 statuses of 20 ms one after the other, on any machine. Nodekeeper's calls are in progress at the same time, so that its time depends mainly on the CPU time that it uses. Under the profiler, on an AMD EPYC, a changed pod keeps the main thread busy for 6.2 ms, of which garbage collection of a small heap takes 26 %, and Node's HTTP/2 with its streams 14 %. In one process, 100 pods took 640 ms of CPU with the settings of V8 that keep the agent small, and 235 ms with V8's own ([lifecycle](benchmarks.md#lifecycle)).",
  "devices-published": `of 1,614 ms until the last write, the agent's main thread is idle for 1,030 ms: it waits for the API server and etcd on the same two processors, as the peer does, so that the ratio differs from run to run. ${capitalized(devices)}`,
  "devices-cpu": devices,
  "changed-device": changedDevice,
  "changed-device-cpu": changedDevice,
  "one-claim": oneClaim,
  "30-claims": claims,
  "30-claims-cpu": claims,
  "eviction-round": evictionRound,
  "eviction-round-cpu": evictionRound,
  "reporting-busy": pacing,
  "reporting-busy-p99": pacing,
  "agent-katalyst-rss": memory,
  "agent-katalyst-anonymous": memory,
  "agent-katalyst-start": start,
  "agent-katalyst-idle": idle,
  "agent-nfd-rss": memory,
  "agent-nfd-anonymous": memory,
  "agent-nfd-start": start,
  "agent-nfd-idle": idle,
  "agent-reporting-start": reportingStart,
};

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
