import { aborted, rawField, startBarePlugin } from "./plugins.ts";

// A process of its own, so that its memory is not the agent's. Arguments: directory, name, mebibytes of a message.
const [directory = "", name = "", mebibytes = "64"] = process.argv.slice(2);
const content = [rawField("huge", Buffer.alloc(Number(mebibytes) * 2 ** 20, 0x20))];
await startBarePlugin(directory, name, {
  getReportContent: async () => ({ content }),
  async *listAndWatchReportContent(_, { signal }) {
    yield { content };
    await aborted(signal);
  },
});
console.log("serving");
