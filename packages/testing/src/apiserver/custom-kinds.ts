import type { KubeObject } from "@nodekeeper/core/kube";
import { definitionOf } from "./catalogue/custom.ts";
import type { WriteContext } from "./writes/context.ts";
import { removeNow } from "./writes/delete.ts";

const STORAGE = "customresourcedefinitions.apiextensions.k8s.io";

/** Serves the kinds of all stored CustomResourceDefinitions and follows their changes. */
export function followCustomKinds(context: WriteContext): void {
  const { store, catalogue } = context;
  const builtIn = new Set(catalogue.all().map(({ storage }) => storage));
  const serve = (crd: KubeObject) => {
    const definition = definitionOf(crd);
    // A definition of a built-in kind, such as katalyst's, has no effect.
    if (!builtIn.has(definition.storage)) catalogue.set(definition);
  };
  const withdraw = (crd: KubeObject) => {
    const definition = catalogue.byName(crd.metadata.name ?? "");
    if (!definition || builtIn.has(definition.storage)) return;
    for (const object of store.list(definition.storage)) removeNow(context, definition, object, true);
    catalogue.delete(definition);
  };
  for (const crd of store.list(STORAGE)) serve(crd);
  store.hub.subscribe(STORAGE, ({ type, object }) => (type === "DELETED" ? withdraw(object) : serve(object)));
}
