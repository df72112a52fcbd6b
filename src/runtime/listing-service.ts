import { RuntimeServiceDefinition } from "../gen/runtime/v1/api.ts";

export const ListingServiceDefinition = RuntimeServiceDefinition;
