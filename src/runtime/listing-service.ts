import {
  ListContainersResponse,
  ListPodSandboxResponse,
  RuntimeServiceDefinition,
  StreamContainersResponse,
  StreamPodSandboxesResponse,
} from "../gen/runtime/v1/api.ts";
import { decodeContainers, decodeSandboxes } from "./list-decoding.ts";

const { methods } = RuntimeServiceDefinition;

/** The runtime's service, with a decoding of lists that is made for them. */
export const ListingServiceDefinition = {
  ...RuntimeServiceDefinition,
  methods: {
    ...methods,
    listPodSandbox: {
      ...methods.listPodSandbox,
      responseType: {
        ...ListPodSandboxResponse,
        decode: (bytes: Uint8Array): ListPodSandboxResponse => ({ items: decodeSandboxes(bytes) }),
      },
    },
    streamPodSandboxes: {
      ...methods.streamPodSandboxes,
      responseType: {
        ...StreamPodSandboxesResponse,
        decode: (bytes: Uint8Array): StreamPodSandboxesResponse => ({ podSandboxes: decodeSandboxes(bytes) }),
      },
    },
    listContainers: {
      ...methods.listContainers,
      responseType: {
        ...ListContainersResponse,
        decode: (bytes: Uint8Array): ListContainersResponse => ({ containers: decodeContainers(bytes) }),
      },
    },
    streamContainers: {
      ...methods.streamContainers,
      responseType: {
        ...StreamContainersResponse,
        decode: (bytes: Uint8Array): StreamContainersResponse => ({ containers: decodeContainers(bytes) }),
      },
    },
  },
} as const;
