import { plainTexts } from "@nodekeeper/api/text";
import type { AgentConnection } from "./agent-connection.ts";
import type { AgentAccess, Options } from "./commands/context.ts";
import type { RecordSource } from "./eviction/record-source.ts";
import type { Fleet } from "./fleet.ts";

/**
 * Wraps access to agents for commands that print text: all strings of all responses are escaped before a command gets
 * them, so that no command can print a newline or an escape sequence from a name, reason or message. Responses printed
 * as JSON or YAML are unchanged, because the serializers escape them.
 */
export function plainAccess(access: AgentAccess): AgentAccess {
  return {
    addOptions: (command) => access.addOptions(command),
    addRecordOptions: (command) => access.addRecordOptions(command),
    addNodeArgument: (command) => access.addNodeArgument(command),
    addPodOptions: (command) => access.addPodOptions(command),
    addNamespaceOptions: (command) => access.addNamespaceOptions(command),
    async connect(options) {
      const agent = await access.connect(options);
      return isSerialized(options) ? agent : plainConnection(agent);
    },
    async openRecords(options) {
      const source = await access.openRecords(options);
      return isSerialized(options) ? source : plainSource(source);
    },
    async explainPod(options, pod) {
      const explanation = await access.explainPod(options, pod);
      return isSerialized(options) ? explanation : plainTexts(explanation);
    },
    async explainNode(options) {
      const explanation = await access.explainNode(options);
      return isSerialized(options) ? explanation : plainTexts(explanation);
    },
    namespaceOf: (options) => access.namespaceOf(options),
    defaultNamespace: (options) => access.defaultNamespace(options),
    fleet(options) {
      const fleet = access.fleet(options);
      return fleet && !isSerialized(options) ? plainFleet(fleet) : fleet;
    },
    get statusDescription() {
      return access.statusDescription;
    },
  };
}

function isSerialized({ output, records }: Options): boolean {
  return output === "json" || output === "yaml" || records === true;
}

function plainConnection(agent: AgentConnection): AgentConnection {
  return {
    get: async (path, query) => plainTexts(await agent.get(path, query)),
    [Symbol.dispose]: () => agent[Symbol.dispose](),
  };
}

function plainFleet(fleet: Fleet): Fleet {
  return {
    async ask(work) {
      const answers = await fleet.ask((agent, node) => work(plainConnection(agent), node));
      return answers.map((each) => ({ ...each, node: plainTexts(each.node) }));
    },
  };
}

function plainSource(source: RecordSource): RecordSource {
  return {
    isLive: source.isLive,
    explainPod: async (pod) => plainTexts(await source.explainPod(pod)),
    explainNode: async () => plainTexts(await source.explainNode()),
    rounds: async (since, after) => plainTexts(await source.rounds(since, after)),
    records: (since) => plainItems(source.records(since)),
    history: (since) => plainItems(source.history(since)),
    [Symbol.dispose]: () => source[Symbol.dispose](),
  };
}

async function* plainItems<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const item of items) yield plainTexts(item);
}
