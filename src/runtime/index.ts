export type {
  ContainerState,
  ContainerStatus,
  ListedContainer,
  Pod,
  PodStatus,
  Runtime,
  RuntimeHint,
  RuntimeVersion,
  SandboxStatus,
} from "./types.ts";
